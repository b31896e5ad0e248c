"""The rows of a tree that can't write them itself any more."""

import pytest

from tests.tree.simulator import ROOT, World, tree_input
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.lost_trees import dismissed_rows, given_up, lost_rows


@pytest.mark.ruling("G2", "B3")
@pytest.mark.parametrize(
    ("anew", "state", "waits_for", "what_next"),
    [
        ("", TaskState.BLOCKED, WaitsFor.RETRY, f"service job retry {ROOT}"),
        ("service agent ask lead", TaskState.CANCELLED, WaitsFor.START, "service agent ask lead"),
    ],
)
def test_a_lost_tree_says_in_a_word_what_it_waits_for(
    anew: str, state: TaskState, waits_for: WaitsFor, what_next: str
) -> None:
    tree = World(tree_input()).begin().state
    rows = lost_rows(tree.task, tree.jobs.values(), (), why="terminated", anew=anew, number=9, now=2.0)
    assert rows.task is not None
    assert rows.task.state is state
    assert (rows.task.waits_for, rows.task.next) == (waits_for, what_next)
    assert {(job.waits_for, job.next) for job in rows.jobs} == {(waits_for, what_next)}
    over = dismissed_rows(rows.task, actor="ann", number=10, now=3.0).task
    assert over is not None
    assert (over.waits_for, over.next) == (WaitsFor.NOTHING, "")


@pytest.mark.ruling("engine:outside", "F8")
def test_the_pause_of_a_lost_tree_ends_with_it_and_stays_excluded() -> None:
    tree = World(tree_input()).begin().state
    paused = tree.task.model_copy(update={"paused_seconds": 5.0, "paused_since": 10.0})
    task = lost_rows(paused, (), (), why="terminated", anew="", number=1, now=30.0).task
    assert task is not None
    assert (task.paused_seconds, task.paused_since) == (25.0, None)


@pytest.mark.ruling("engine:outside.reset")
def test_what_a_reset_gave_up_waits_for_nothing() -> None:
    tree = World(tree_input()).begin().state
    waiting = [job.model_copy(update={"waits_for": WaitsFor.RESUME}) for job in tree.jobs.values()]
    none = lost_rows(tree.task, (), (), why="", anew="", number=1, now=1.0)
    rows = given_up(waiting, (), none, revision=9, now=2.0)
    assert [(job.state, job.waits_for) for job in rows.jobs] == [(JobState.CANCELLED, WaitsFor.NOTHING)]
