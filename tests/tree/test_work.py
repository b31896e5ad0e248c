"""Whose work a leg gets."""

import pytest

from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.jobs import Work
from workflows.model.states import Continuation


def tree(*legs: Delegation) -> World:
    world = World(tree_input(branch_deps=("task",))).begin()
    world.coordinator("approved", *legs)
    return world


@pytest.mark.ruling("I1", "I2", "engine:nested")
def test_a_leg_that_delegated_hands_on_the_work_of_its_whole_chain() -> None:
    """Two generations, one of them nested once more; readers, failures and what came to nothing hand on nothing."""
    world = tree(delegation("lead", "lead"), delegation("check", "reader", "review", deps=("lead",)))
    gone = delegation("gone", failure_policy="continue")
    world.leg("lead", "approved", delegation("y", deps=("x",)), delegation("x"), delegation("r", action="review"), gone)
    world.leg("gone", "failed", branch="b-gone")
    world.leg("r", branch="b-reader")
    world.leg("x", branch="b-x")
    world.leg("y", branch="b-y")
    world.end(world.last.job_id, "approved", delegation("deep", "lead", "review"), branch="b-lead-again")
    world.leg("deep", "approved", delegation("z"))
    world.leg("z", branch="b-z")
    world.end(world.last.job_id, "approved")
    world.end(world.last.job_id, "implemented")
    assert world.last.delegation_id == "check"
    assert world.last.branch_deps == ("task", "b-x", "b-y", "b-lead-again", "b-z")


@pytest.mark.ruling("I1", "engine:nested")
def test_a_nested_leg_sees_what_its_coordinator_was_given() -> None:
    world = tree(delegation("base"), delegation("lead", "lead", deps=("base",)))
    world.leg("base", branch="b-base")
    world.leg("lead", "approved", delegation("x"), branch="b-lead")
    assert world.last.branch_deps == ("task", "b-base")


@pytest.mark.ruling("I1", "D3", "D4")
@pytest.mark.parametrize("by", ["retry", "operator", "person"])
def test_a_failed_attempt_s_branch_never_stands_for_one_that_changed_nothing(by: str) -> None:
    first = delegation("a", retry=int(by == "retry"), failure_policy="escalate_human" if by == "person" else None)
    world = tree(first, delegation("b", deps=("a",)))
    world.leg("a", "failed", branch="half-done", head_sha="abc")
    if by == "retry":
        world.fire()
    elif by == "operator":
        world.retry(f"{ROOT}.1")
    else:
        world.resume("retry")
    assert (world.jobs[f"{ROOT}.1"].branch, world.jobs[f"{ROOT}.1"].head_sha) == (None, None)
    world.leg("a", "approved")
    assert world.last.branch_deps == ("task",)


@pytest.mark.ruling("I1", "D3", "engine:nested")
def test_a_chain_that_ran_again_hands_on_nothing_of_the_chain_before() -> None:
    world = tree(delegation("lead", "lead", retry=1), delegation("b", deps=("lead",)))
    world.leg("lead", "approved", delegation("x"))
    world.leg("x", branch="b-x-first")
    world.end(world.last.job_id, "failed", branch="b-lead-first")
    world.fire()
    world.leg("lead", "approved", delegation("x"))
    world.leg("x", branch="b-x")
    world.end(world.last.job_id, "implemented")
    assert world.last.branch_deps == ("task", "b-x")


@pytest.mark.ruling("D4", "I1")
def test_a_coordinator_that_is_run_again_starts_without_its_old_branch() -> None:
    world = World(tree_input()).begin()
    world.coordinator("failed", branch="half-done")
    world.retry(ROOT)
    world.coordinator("implemented")
    assert world.jobs[ROOT].branch is None
    assert world.close is not None
    assert world.close.branches == ()


def names(work: tuple[Work, ...]) -> list[tuple[str, str]]:
    return [(each.leg, each.branch) for each in work]


@pytest.mark.ruling("O2")
def test_a_generation_begins_from_what_those_before_it_made() -> None:
    """A failed leg is not on the line, and legs of one generation do not see each other."""
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"), delegation("bad", failure_policy="continue"), delegation("b"))
    assert [names(run.line) for run in world.runs] == [[], [], [], []]
    world.leg("a", branch="b-a", head_sha="1")
    world.leg("bad", "failed", branch="b-bad", head_sha="2")
    world.leg("b", branch="b-b", head_sha="3")
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b")]
    world.end(world.last.job_id, "approved", delegation("fix"), delegation("check", action="review", deps=("fix",)))
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b")]
    world.leg("fix", branch="b-fix", head_sha="4")
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b")]
    assert names(world.last.deps) == [("fix", "b-fix")]
    world.leg("check")
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b"), ("fix", "b-fix")]
    assert [each.head for each in world.last.line] == ["1", "3", "4"]


@pytest.mark.ruling("O2", "engine:nested")
def test_a_nested_chain_begins_from_what_its_leg_began_from() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a", branch="b-a")
    world.end(world.last.job_id, "approved", delegation("near"), delegation("lead", "lead", deps=("near",)))
    world.leg("near", branch="b-near")
    world.leg("lead", "approved", delegation("x"), branch="b-lead")
    assert names(world.last.line) == [("a", "b-a"), ("near", "b-near"), ("", "b-lead")]
    world.leg("x", branch="b-x")
    assert names(world.last.line)[3:] == [("x", "b-x")]
    assert world.last.own_branch == "b-lead"
    world.end(world.last.job_id, "implemented", branch="b-lead")
    assert names(world.last.line) == [("a", "b-a"), ("near", "b-near"), ("lead", "b-lead"), ("lead", "b-x")]


@pytest.mark.ruling("O2")
def test_a_leg_asks_for_the_base() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a", branch="b-a")
    world.end(world.last.job_id, "approved", delegation("fresh", worktree="@base"))
    assert (world.last.at_base, world.last.line, world.last.shared_worktree) == (True, (), None)


@pytest.mark.ruling("O5", "F2")
def test_a_job_that_asked_goes_on_on_its_branch() -> None:
    world = World(tree_input()).begin()
    question = (HumanQuestion(id="q", prompt="which?"),)
    world.coordinator("blocked", branch="b-root", head_sha="1", human_questions=question)
    world.resume("answer", "that")
    assert (world.last.continuation, world.last.own_branch) == (Continuation.ANSWERED, "b-root")
