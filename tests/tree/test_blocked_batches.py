"""A coordinator whose batch is blocked says so on its own row, and in the tree's lines, until it is opened (B3, D4)."""

import pytest

from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.model.states import JobState
from workflows.tree.details import job_lines

pytestmark = pytest.mark.ruling("B3", "D4")


def lines(tree: World) -> list[str]:
    return [line for line in job_lines(tree.jobs.values()) if "batch blocked" in line]


def test_a_nested_coordinator_and_the_one_above_it_are_marked_until_a_retry_opens_them() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("team", "lead"))
    tree.leg("team", "approved", delegation("work"), delegation("more"), summary="shared out")
    tree.leg("work", "failed", reason="no compiler")
    tree.leg("more")
    team = tree.jobs[f"{ROOT}.1"]
    assert team.state is JobState.SUCCEEDED, "its own job went well"
    assert team.reason.startswith("its batch is blocked: part work failed")
    assert len(lines(tree)) == 2, "the root, whose leg is blocked by it, too"
    tree.retry(f"{ROOT}.2")
    assert lines(tree) == []
    assert tree.jobs[f"{ROOT}.1"].reason == ""
    tree.leg("work")
    assert lines(tree) == []


def test_a_vote_that_is_not_met_marks_its_coordinator() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", action="review", synthesis_rule="vote"))
    tree.leg("a", "changes_requested")
    assert len(lines(tree)) == 1
    assert tree.jobs[ROOT].reason.startswith("its batch is blocked: ")


def test_a_dismissed_or_killed_tree_keeps_the_mark_of_how_it_ended() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a", "failed")
    tree.kill()
    assert len(lines(tree)) == 1


def test_a_leg_that_is_stopped_by_a_kill_says_who_killed_it() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a"))
    tree.kill(immediate=True)
    tree.leg("a", None, state=JobState.CANCELLED, reason="stopped on order")
    assert tree.jobs[f"{ROOT}.1"].reason == "stopped on order: killed by ann"
