"""The shapes and colours of states are the same wherever states are shown."""

import pytest

from cli.drawing.looks import Look, mark_of, of_state
from cli.drawing.trees import tree_line
from tests.rows import ROOT, job
from workflows.github.texts.views import STATES
from workflows.model.states import JobState, TaskState
from workflows.pipeline import view
from workflows.pipeline.plan import RunState, StageState
from workflows.tree import details

pytestmark = pytest.mark.ruling("N6")


@pytest.mark.parametrize("state", JobState)
def test_the_shape_of_a_job_is_that_of_the_web_ui(state: JobState) -> None:
    assert mark_of(state) == details.MARKS[state]


@pytest.mark.parametrize("state", StageState)
def test_the_shape_of_a_stage_is_that_of_the_web_ui(state: StageState) -> None:
    assert mark_of(state) == view.MARKS[state]


@pytest.mark.parametrize("state", TaskState)
def test_the_shape_of_a_task_is_that_of_its_comment(state: TaskState) -> None:
    assert mark_of(state) == STATES[state][0]


@pytest.mark.parametrize("state", sorted({*JobState, *TaskState, *RunState, *StageState}))
def test_every_state_has_a_look(state: str) -> None:
    assert of_state(state) is not Look.PLAIN


def test_colours_are_those_of_the_theme_and_can_be_read_on_light_and_dark() -> None:
    numbers = {number for look in Look for number in look.value.split(";") if number}
    assert numbers <= {"1", "2", "31", "32", "35", "36"}, "no yellow, no bright colour, no background"


@pytest.mark.parametrize("state", JobState)
def test_a_line_of_a_tree_has_the_look_of_its_state(state: JobState) -> None:
    top, below = details.nested([job(state=state), job(f"{ROOT}.1", state=state, parent_job_id=ROOT, summary="it: x")])
    for line in (top, below):
        looked = tree_line(line)
        assert looked == line
        looks = {piece.text: piece.look for piece in looked.pieces}
        assert looks[details.MARKS[state]] is looks[state] is of_state(state)
    assert tree_line(below).below == "     | "


def test_a_line_that_is_no_job_is_left_as_it_is() -> None:
    assert tree_line("nothing is here").pieces == (("nothing is here", Look.PLAIN, ""),)
