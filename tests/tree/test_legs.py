"""The start, row and duplicate of a leg."""

from typing import Any

import pytest

from tests.tree.simulator import AGENTS, CODER, ROOT, World, delegation, tokens, tree_input
from workflows.contract.models import Delegation
from workflows.model.settings import RuntimeDefaults, Timeouts, TreeSettings
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.tree.details import details

SETTINGS = TreeSettings(
    timeouts=Timeouts(default_review_timeout=60.0),
    runtimes={"runtime_a": RuntimeDefaults(default_model="usual", default_effort="low")},
)


def tree(*legs: Delegation, settings: TreeSettings | None = None) -> World:
    world = World(tree_input(settings=settings or TreeSettings())).begin()
    world.coordinator("approved", *legs)
    return world


@pytest.mark.ruling("spec:linkage", "B1")
def test_a_child_and_its_row_carry_the_whole_linkage() -> None:
    world = tree(delegation("a", "lead"))
    world.leg("a", "approved", delegation("x"))
    run, row = world.last, world.jobs[f"{ROOT}.2"]
    for carrier in (run, row):
        assert (carrier.parent_job_id, carrier.delegation_id) == (f"{ROOT}.1", "x")
        assert (carrier.root_job_id, carrier.delegation_depth, carrier.task_id) == (ROOT, 2, "task-1")


@pytest.mark.ruling("spec:timeouts.precedence", "spec:delegation.model", "spec:delegation.effort")
def test_a_leg_goes_out_with_its_model_effort_and_timeout_resolved() -> None:
    own = delegation("a", model="deep", effort="high", timeout="5m", phase="review")
    world = tree(own, delegation("b", action="review"), settings=SETTINGS)
    sent = {
        run.delegation_id: (run.assignment.model, run.assignment.effort, run.assignment.timeout_seconds)
        for run in world.flying.values()
    }
    assert sent == {"a": ("deep", "high", 300.0), "b": ("usual", "low", 60.0)}
    assert (world.jobs[f"{ROOT}.1"].model, world.jobs[f"{ROOT}.2"].effort) == ("deep", "low")


@pytest.mark.ruling("B3")
@pytest.mark.parametrize("word", ["blocked", "failed"])
def test_a_decision_that_is_the_state_is_said_once_in_the_details(word: str) -> None:
    world = tree(delegation("a", failure_policy="continue"), delegation("b"))
    world.leg("a", word, summary="no key")
    world.leg("b", "approved")
    shown = [line for line in details(world.state).splitlines() if " coder " in line]
    assert [line.count(word) for line in shown] == [1, 0]
    assert "succeeded approved" in shown[1]


@pytest.mark.ruling("spec:delegation.phase", "E6")
def test_a_phase_is_echoed_to_the_coordinator() -> None:
    world = tree(delegation("a", phase="plan"), delegation("b"))
    world.leg("a")
    world.leg("b")
    assert world.last.brief is not None
    assert [leg.phase for leg in world.last.brief.legs] == ["plan", None]


@pytest.mark.ruling("spec:delegation.phase")
def test_phases_change_nothing_of_what_runs_when() -> None:
    courses = []
    for phases in ((None, None, None), ("gate", "plan", "anything")):
        first, second, third = phases
        world = tree(
            delegation("a", phase=first, retry=1, failure_policy="continue"),
            delegation("b", phase=second),
            delegation("c", phase=third, deps=("b",)),
        )
        world.leg("a", "failed")
        world.leg("b")
        world.fire()
        world.leg("a", "failed")
        world.leg("c")
        runs = (
            (run.delegation_id, run.attempt, run.continuation, run.assignment.timeout_seconds) for run in world.runs
        )
        courses.append(list(runs))
    assert courses[0] == courses[1]
    assert [leg for leg, *_ in courses[0]] == [None, "a", "b", "c", "a", None]


@pytest.mark.ruling("K5")
def test_spend_is_priced_by_the_model_that_was_really_used() -> None:
    world = tree(delegation("a", model="asked"), settings=TreeSettings(prices={"asked": (1, 0), "used": (2, 0)}))
    world.leg("a", model="used", usage=tokens(1_000_000))
    assert (world.jobs[f"{ROOT}.1"].cost_usd, world.jobs[f"{ROOT}.1"].model) == (2.0, "used")


@pytest.mark.ruling("C5", "E3")
def test_a_duplicate_casts_no_ballot() -> None:
    legs = [delegation(each, synthesis_rule="quorum", quorum=2, fingerprint="x") for each in "ab"]
    world = tree(*legs, delegation("c"))
    world.leg("a")
    world.leg("c", "changes_requested")
    assert world.task_state() is TaskState.BLOCKED
    assert "1 of the 2 approvals" in world.state.task.reason


@pytest.mark.ruling("C5", "E3")
def test_of_a_leg_and_its_duplicate_the_larger_quorum_counts() -> None:
    legs = [delegation(each, synthesis_rule="quorum", quorum=k, fingerprint="x") for each, k in (("a", 1), ("b", 2))]
    world = tree(*legs, delegation("c"))
    world.leg("a")
    world.leg("c", "changes_requested")
    assert world.task_state() is TaskState.BLOCKED
    assert "1 of the 2 approvals" in world.state.task.reason


@pytest.mark.ruling("C5", "E1", "E4")
@pytest.mark.parametrize(
    ("tag", "ended", "reason"),
    [
        ({"synthesis_rule": "verify"}, "replan", "verification failed: a (changes_requested)"),
        ({"synthesis_rule": "vote"}, "blocked", "the vote failed: a did not approve"),
        ({"synthesis_rule": "quorum", "quorum": 2}, "blocked", "the quorum was not met: 1 of the 2 approvals needed"),
    ],
)
def test_a_rule_on_a_duplicate_counts_through_its_twin(tag: dict[str, Any], ended: str, reason: str) -> None:
    world = tree(delegation("a", fingerprint="x"), delegation("b", fingerprint="x", **tag), delegation("c"))
    world.leg("a", "changes_requested")
    world.leg("c")
    if ended == "blocked":
        assert (world.task_state(), world.state.task.reason) == (TaskState.BLOCKED, reason)
    else:
        assert world.last.continuation is Continuation.REPLAN
        assert world.last.brief is not None
        assert world.last.brief.notes == (reason,)


@pytest.mark.ruling("C5", "D8")
@pytest.mark.parametrize(("policy", "state"), [(None, "open"), ("escalate_human", "awaiting_human")])
def test_what_a_duplicate_says_of_failures_holds_where_its_twin_says_nothing(policy: str | None, state: str) -> None:
    ballot = delegation("b", fingerprint="x", synthesis_rule="verify", failure_policy=policy)
    world = tree(delegation("a", fingerprint="x"), ballot, delegation("c"))
    world.leg("a", "failed")
    assert world.task_state() is TaskState(state)


@pytest.mark.ruling("C5", "C7")
def test_a_duplicate_whose_own_dependency_failed_still_has_its_twin_s_outcome() -> None:
    world = tree(
        delegation("a", fingerprint="x"),
        delegation("c", failure_policy="continue"),
        delegation("b", fingerprint="x", deps=("c",)),
    )
    world.leg("c", "failed")
    world.leg("a")
    assert world.last.continuation is Continuation.NORMAL
    assert world.last.brief is not None
    assert [leg.state.value for leg in world.last.brief.legs] == ["succeeded", "failed", "succeeded"]


@pytest.mark.ruling("I3")
def test_a_worktree_is_shared_across_coordinators_one_leg_at_a_time() -> None:
    world = tree(delegation("side", worktree="w"), delegation("lead", "lead"))
    world.leg("lead", "approved", delegation("x", worktree="w"))
    assert [run.delegation_id for run in world.flying.values()] == ["side"]
    world.leg("side")
    assert world.last.delegation_id == "x"


@pytest.mark.ruling("I3")
def test_a_worktree_that_a_deeper_leg_uses_is_in_use_above_it_too() -> None:
    world = tree(delegation("lead", "lead"), delegation("first"), delegation("side", worktree="w", deps=("first",)))
    world.leg("lead", "approved", delegation("x", worktree="w"))
    world.leg("first")
    assert [run.delegation_id for run in world.flying.values()] == ["x"]
    world.leg("x")
    assert "side" in {run.delegation_id for run in world.flying.values()}


@pytest.mark.ruling("spec:delegation.worktree", "I3")
def test_a_leg_without_a_worktree_of_its_own_names_none() -> None:
    world = tree(delegation("a", worktree="w"), delegation("b"))
    assert [run.shared_worktree for run in world.flying.values()] == ["w", None]


@pytest.mark.ruling("B3", "D4")
def test_the_row_of_a_leg_that_blocked_names_the_command_that_runs_it_again() -> None:
    world = tree(delegation("a"), delegation("b", deps=("a",)))
    world.leg("a", "failed", reason="no disk")
    failed, skipped = world.jobs[f"{ROOT}.1"], world.jobs[f"{ROOT}.2"]
    assert (failed.reason, failed.next) == ("no disk", f"service job retry {ROOT}.1")
    assert (skipped.state, skipped.reason) == (JobState.SKIPPED, "the batch is blocked: part a failed: no disk")


@pytest.mark.ruling("K3", "C6")
def test_a_worker_is_frozen_when_its_leg_goes_out() -> None:
    world = tree(delegation("a", retry=1))
    changed = (CODER.model_copy(update={"runtime": "shell"}), *AGENTS[1:])
    world.leg("a", "failed", agents=changed)
    world.fire()
    assert world.last.assignment.worker == CODER


@pytest.mark.ruling("B3", "D4")
def test_the_way_back_names_what_has_to_be_done_before_a_retry_can_help() -> None:
    world = tree(delegation("a"))
    world.leg("a", None, reason="nobody is logged in", first="codex login")
    job = f"{ROOT}.1"
    assert world.jobs[job].next == world.state.task.next == f"codex login; then: service job retry {job}"
    assert world.state.task.waits_for is world.jobs[job].waits_for is WaitsFor.RETRY
    world.retry(job)
    world.leg("a", None, reason="it crashed")
    assert world.jobs[job].next == world.state.task.next == f"service job retry {job}"


@pytest.mark.ruling("B3", "F3")
def test_what_has_to_be_done_first_is_said_again_when_a_person_has_let_the_failure_stand() -> None:
    world = tree(delegation("a", failure_policy="escalate_human"), delegation("b"))
    world.leg("a", None, reason="nobody is logged in", first="codex login")
    job = f"{ROOT}.1"
    assert (world.jobs[job].waits_for, world.jobs[job].next) == (WaitsFor.RESUME, f"service resume {ROOT} retry")
    world.resume("continue")
    assert (world.jobs[job].waits_for, world.jobs[job].next) == (WaitsFor.NOTHING, "codex login")


@pytest.mark.ruling("B3")
def test_a_root_that_nobody_is_logged_in_for_says_so_too() -> None:
    world = World(tree_input()).begin()
    world.coordinator(None, reason="nobody is logged in", first="codex login")
    assert world.state.task.next == f"codex login; then: service job retry {ROOT}"
