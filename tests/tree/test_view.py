"""The size of the Temporal web UI's texts for a tree."""

import pytest

from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.model.rows import Records
from workflows.text.markdown import SUMMARY_LIMIT
from workflows.tree.commands import Command, Record, RunChild, RunCoordinator, StartTimer
from workflows.tree.details import COLUMN, details, wrote

LONG = "A rather long sentence about what was found out, which goes on and on beyond any column " * 3
ASKS = ({"id": "which-database", "prompt": LONG, "choices": ["PostgreSQL 15", "SQLite, with its log written ahead"]},)


@pytest.mark.ruling("engine:ui.details")
def test_no_line_of_a_box_is_wider_than_the_box_and_no_command_is_cut() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("an-implementer-with-a-long-name"), summary=LONG)
    world.leg("an-implementer-with-a-long-name", summary=LONG, human_questions=ASKS)
    shown = details(world.state)
    boxes = shown.split("```")[1::2]
    assert len(boxes) == 3, "what is asked, the words to paste, the jobs"
    assert all(len(line) <= COLUMN for box in (boxes[0], boxes[2]) for line in box.splitlines())
    assert " ".join(boxes[0].split()).count(" ".join(LONG.split())) == 1, "nothing of the question is lost"
    commands = world.open()[0].commands
    assert commands
    assert all(f"\n`{command}`" in shown for command in commands)


@pytest.mark.ruling("engine:ui.details")
def test_a_step_says_what_it_wrote() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"), delegation("b", deps=("a",)))
    commands = world.leg("a", human_questions=ASKS)
    record = next(each for each in commands if isinstance(each, Record))
    assert wrote(record.records) == (
        f"round 1 of {ROOT} asks which-database; waits until 1970-01-02 00:16:42 UTC; a succeeded, approved"
    )
    assert wrote(Records()) == "rows brought up to date"


@pytest.mark.ruling("engine:ui.details")
def test_a_step_names_jobs_of_one_state_together_and_says_why_one_failed() -> None:
    world = World(tree_input()).begin()
    commands = world.coordinator(
        "approved", delegation("a"), delegation("b"), delegation("c", failure_policy="continue")
    )
    assert _said(commands) == "root succeeded, approved; a, b, c queued"
    assert _said(world.leg("c", None, reason="its program crashed")) == "c failed: its program crashed"


@pytest.mark.ruling("engine:ui.paths")
def test_the_summary_of_a_job_begins_with_its_path_in_the_tree() -> None:
    world = World(tree_input()).begin()
    assert _summaries(world.coordinator("approved", delegation("sub"), delegation("b"))) == [
        "sub · coder implement · a goal",
        "b · coder implement · a goal",
    ]
    below = world.leg("sub", "approved", delegation("design"), delegation("build", retry=1))
    assert _summaries(below)[0] == "sub / design · coder implement · a goal"
    world.leg("design")
    waits = world.leg("build", None)
    assert [each.summary for each in waits if isinstance(each, StartTimer)] == ["sub / build: waits before attempt 2"]
    assert _summaries(world.fire()) == ["sub / build · coder implement, attempt 2 · a goal"]
    assert _summaries(world.leg("build")) == ["sub · coder implement, reads the results · a goal"]


@pytest.mark.ruling("engine:ui.paths")
def test_the_timer_of_a_pause_says_who_waits_and_what_comes() -> None:
    world = World(tree_input()).begin()
    asks = world.coordinator("approved", human_questions=ASKS)
    (timer,) = [each for each in asks if isinstance(each, StartTimer)]
    assert timer.summary == "root waits for a person, round 1: first reminder"


@pytest.mark.ruling("engine:ui.paths")
def test_a_title_of_any_length_and_kind_makes_one_line_of_a_summary() -> None:
    world = World(tree_input(title=f"line\nline\x1b {LONG}")).begin()
    (summary,) = _summaries(world.coordinator("approved", delegation("a")))
    assert len(summary) == SUMMARY_LIMIT
    assert summary.startswith("a · coder implement · line line")
    assert summary.isprintable()


def _said(commands: list[Command]) -> str:
    return wrote(next(each.records for each in commands if isinstance(each, Record)))


def _summaries(commands: list[Command]) -> list[str]:
    return [each.summary for each in commands if isinstance(each, RunChild | RunCoordinator)]
