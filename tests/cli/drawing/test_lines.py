"""The shapes and colours of states are equal wherever states are shown."""

import pytest

from cli.drawing.lines import OF_MARKS, Tone, of_state, tree_line
from tests.rows import ROOT, job
from workflows.contract.models import Decision
from workflows.github.texts.comments import STATES
from workflows.model.states import JobState, TaskState
from workflows.pipeline import view
from workflows.pipeline.plan import RunState, StageState
from workflows.tree import details

pytestmark = pytest.mark.ruling("N6")


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        *((details.MARKS[state], state) for state in JobState),
        *((view.MARKS[state], state) for state in StageState),
        *((STATES[state][0], state) for state in TaskState),
    ],
)
def test_a_shape_and_its_state_have_one_colour(mark: str, state: str) -> None:
    """In the web UI, in comments and here, one shape means one state."""
    assert of_state(OF_MARKS[mark]) is of_state(state)


@pytest.mark.parametrize(
    "state", sorted({*JobState, *TaskState, *RunState, *StageState, *(decision.words for decision in Decision)})
)
def test_every_state_has_a_look(state: str) -> None:
    assert of_state(state) is not Tone.PLAIN


def test_colours_are_those_of_the_theme_and_can_be_read_on_light_and_dark() -> None:
    numbers = {number for look in Tone for number in look.value.split(";") if number}
    assert numbers <= {"1", "2", "31", "32", "35", "36"}, "no yellow, no bright colour, no background"


@pytest.mark.parametrize("state", JobState)
def test_a_line_of_a_tree_has_the_look_of_its_state(state: JobState) -> None:
    top, below = details.job_lines(
        [job(state=state), job(f"{ROOT}.1", state=state, parent_job_id=ROOT, summary="it: x")]
    )
    for line in (top, below):
        looked = tree_line(line)
        assert looked == line
        looks = {piece.text: piece.tone for piece in looked.pieces}
        assert looks[details.MARKS[state]] is looks[state] is of_state(state)
    assert tree_line(below).below == "     | "


def test_a_line_that_is_no_job_is_left_as_it_is() -> None:
    assert tree_line("nothing is here").pieces == (("nothing is here", Tone.PLAIN, ""),)
