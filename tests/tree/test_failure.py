import pytest

from tests.tree.simulator import ROOT, World, delegation, done, outcome, tree_input
from workflows.contract.models import Delegation
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState
from workflows.tree.commands import CancelTimer
from workflows.tree.events import JobEnded, TimerFired


def batch(*legs: Delegation, bounds: Bounds | None = None) -> World:
    tree = World(tree_input(bounds)).begin()
    tree.coordinator("approved", *legs)
    return tree


def state(tree: World, leg_id: str) -> JobState:
    return tree.named(leg_id).state


@pytest.mark.ruling("D4", "C7", "B3", "spec:states.block_parent")
def test_block_parent_blocks_at_once_and_running_siblings_finish() -> None:
    tree = batch(delegation("a"), delegation("b"), delegation("c", deps=("b",)))
    tree.leg("a", "failed", reason="no compiler")
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.task.next == f"service job retry {ROOT}.1"
    assert state(tree, "c") is JobState.SKIPPED
    assert tree.close is None
    tree.leg("b")
    assert tree.jobs[f"{ROOT}.2"].state is JobState.SUCCEEDED
    assert tree.state.closed
    assert all(run.continuation is Continuation.NONE for run in tree.runs), "no continuation"


@pytest.mark.ruling("D4", "B2", "spec:states.block_parent")
def test_an_operator_s_retry_reopens_the_tree_and_the_batch_goes_on() -> None:
    tree = batch(delegation("a"), delegation("b", deps=("a",)))
    tree.leg("a", "failed")
    assert tree.state.closed
    tree.retry(f"{ROOT}.1")
    assert tree.task_state() is TaskState.OPEN
    assert (tree.last.job_id, tree.last.attempt) == (f"{ROOT}.1", 2)
    tree.leg("a")
    tree.leg("b")
    assert tree.last.continuation is Continuation.NORMAL
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("D4")
def test_two_failed_legs_both_have_to_be_run_again() -> None:
    tree = batch(delegation("a"), delegation("b"), delegation("c", deps=("a",)))
    tree.leg("a", "failed")
    tree.leg("b", "failed")
    tree.retry(f"{ROOT}.1")
    tree.leg("a")
    assert tree.task_state() is TaskState.BLOCKED
    assert state(tree, "c") is JobState.SKIPPED
    tree.retry(f"{ROOT}.2")
    assert tree.task_state() is TaskState.OPEN
    assert {run.delegation_id for run in tree.flying.values()} == {"b", "c"}


@pytest.mark.ruling("D4", "C3")
def test_a_retry_that_makes_no_sense_is_refused_with_the_reason() -> None:
    tree = batch(delegation("a"), delegation("b", deps=("a",)), bounds=Bounds(max_delegation_total_jobs=2))
    tree.leg("a", "failed")
    for job_id, word in (("nothing", "no job"), (f"{ROOT}.1", "per-root job budget of 2")):
        tree.retry(job_id)
        assert tree.said[-1].kind == "retry_refused"
        assert word in tree.said[-1].message
    assert tree.state.closed


@pytest.mark.ruling("C7", "D4")
def test_a_leg_is_not_run_again_while_what_it_depends_on_runs_again() -> None:
    tree = batch(delegation("a", synthesis_rule="vote"), delegation("b", deps=("a",), synthesis_rule="vote"))
    tree.leg("a")
    tree.leg("b", "failed")
    tree.retry(f"{ROOT}.1")
    tree.retry(f"{ROOT}.2")
    assert tree.said[-1].kind == "retry_refused"
    assert tree.said[-1].message.startswith("its dependency a is running")
    assert [run.delegation_id for run in tree.flying.values()] == ["a"]


@pytest.mark.ruling("D4", "C4")
def test_time_in_which_a_blocked_tree_was_closed_is_not_the_tree_s() -> None:
    tree = batch(delegation("a"), bounds=Bounds(max_delegation_wall_clock_seconds=100))
    tree.leg("a", "failed")
    tree.state.now += 50_000
    tree.retry(f"{ROOT}.1")
    tree.leg("a")
    tree.coordinator("approved", delegation("z"))
    assert tree.last.delegation_id == "z"


@pytest.mark.ruling("C4", "G2")
def test_time_in_which_a_killed_tree_was_closed_is_not_the_tree_s() -> None:
    tree = batch(delegation("a"))
    tree.leg("a", "failed")
    tree.state.now += 50_000
    tree.kill()
    assert tree.state.elapsed_seconds(tree.now) < 100


@pytest.mark.ruling("D5", "C7", "spec:states.continue")
def test_continue_skips_only_what_depended_on_the_failure() -> None:
    tree = batch(
        delegation("a", failure_policy="continue"),
        delegation("b", deps=("a",)),
        delegation("c"),
        delegation("d", deps=("c",)),
    )
    tree.leg("a", "failed")
    assert state(tree, "b") is JobState.SKIPPED
    assert tree.named("b").reason == "its dependency a failed"
    tree.leg("c")
    tree.leg("d")
    assert tree.last.continuation is Continuation.NORMAL
    assert tree.last.brief is not None
    assert tree.last.brief.notes == ("part b was skipped: its dependency a failed",)


@pytest.mark.ruling("D6", "spec:states.escalate")
def test_escalate_hands_every_outcome_to_the_coordinator_and_overrules_the_vote() -> None:
    tree = batch(
        delegation("a", failure_policy="escalate"), delegation("b", synthesis_rule="vote", failure_policy="continue")
    )
    tree.leg("a", "failed")
    tree.leg("b", "changes_requested")
    assert tree.last.continuation is Continuation.NORMAL
    assert tree.last.brief is not None
    assert [leg.state.value for leg in tree.last.brief.legs] == ["failed", "succeeded"]


@pytest.mark.ruling("D6", "E2")
def test_an_escalation_is_over_when_its_leg_succeeds_after_all() -> None:
    tree = batch(
        delegation("a", failure_policy="escalate"), *(delegation(each, synthesis_rule="vote") for each in "bc")
    )
    tree.leg("a", "failed")
    tree.leg("b", "changes_requested")
    tree.retry(f"{ROOT}.1")
    tree.leg("a")
    tree.leg("c")
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.task.reason == "the vote failed: b did not approve"


@pytest.mark.ruling("E3", "spec:synthesis.quorum")
def test_a_quorum_is_decided_when_the_batch_is_settled_and_any_child_may_approve() -> None:
    tree = batch(delegation("a", action="review", synthesis_rule="quorum", quorum=1), delegation("b"), delegation("c"))
    tree.leg("b", "implemented")
    assert [run.delegation_id for run in tree.flying.values()] == ["a", "c"], "nothing is stopped early"
    tree.leg("a", "skipped")
    assert all(run.continuation is Continuation.NONE for run in tree.runs)
    tree.leg("c", "changes_requested")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("D8", "E3")
def test_a_quorum_survives_a_failing_ballot() -> None:
    tree = batch(*(delegation(each, action="review", synthesis_rule="quorum", quorum=2) for each in "abc"))
    tree.leg("a", None)
    tree.leg("b")
    tree.leg("c")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("D2")
def test_changes_requested_is_no_failure() -> None:
    tree = batch(delegation("a", retry=3))
    tree.leg("a", "changes_requested")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("D2", "D3", "spec:delegation.retry")
@pytest.mark.parametrize("ended", ["failed", "blocked", None])
def test_a_failing_child_is_run_again_after_a_pause_before_its_policy_counts(ended: str | None) -> None:
    tree = batch(delegation("a", retry=2))
    for attempt, pause in ((1, 5), (2, 10)):
        tree.leg("a", ended)
        assert list(tree.timers) == [f"retry:{ROOT}.1:{attempt + 1}"]
        assert tree.timers[f"retry:{ROOT}.1:{attempt + 1}"] == tree.now + pause
        tree.fire()
        assert (tree.last.job_id, tree.last.attempt) == (f"{ROOT}.1", attempt + 1)
    tree.leg("a", ended)
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.spent_jobs == 3, "every attempt counts"


@pytest.mark.ruling("A11", "D2")
def test_a_run_that_failed_has_failed_whatever_it_had_decided() -> None:
    tree = batch(delegation("a"))
    tree.leg("a", "approved", delegation("x"), state="failed", reason="exit code 3")
    assert tree.jobs[f"{ROOT}.1"].state is JobState.FAILED
    assert tree.task_state() is TaskState.BLOCKED
    assert "delegation_dropped" in tree.kinds()


@pytest.mark.ruling("D2", "D3")
def test_a_child_that_was_cancelled_from_outside_has_failed() -> None:
    tree = batch(delegation("a", retry=1), delegation("b"))
    tree.leg("a", None, state="cancelled")
    assert tree.timers, "it is run again"
    tree.fire()
    tree.leg("a", None, state="cancelled")
    assert tree.jobs[f"{ROOT}.1"].state is JobState.CANCELLED
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.task.next == f"service job retry {ROOT}.1"


@pytest.mark.ruling("D3", "D1")
def test_a_late_outcome_of_an_earlier_attempt_is_nothing() -> None:
    tree = batch(delegation("a", retry=1))
    first = tree.last
    tree.leg("a", "failed")
    tree.fire()
    assert tree.feed(JobEnded(now=tree.now, outcome=outcome(first))) == []
    assert list(tree.flying) == [f"{ROOT}.1"]


@pytest.mark.ruling("C3", "D3")
def test_a_retry_that_would_cross_the_job_budget_does_not_happen() -> None:
    tree = batch(delegation("a", retry=1, failure_policy="continue"), bounds=Bounds(max_delegation_total_jobs=1))
    tree.leg("a", "failed")
    assert not tree.timers
    assert state(tree, "a") is JobState.FAILED
    assert "delegation_budget_exceeded" in tree.kinds()


@pytest.mark.ruling("D4", "D3")
def test_a_block_gives_up_the_pending_retry_of_a_sibling() -> None:
    tree = batch(delegation("a", retry=1), delegation("b"))
    tree.leg("a", "failed", reason="flaky")
    commands = tree.leg("b", "failed")
    assert any(isinstance(each, CancelTimer) for each in commands)
    assert (state(tree, "a"), tree.state.closed) == (JobState.FAILED, True)
    tree.feed(TimerFired(now=tree.now, key=f"retry:{ROOT}.1:2"))
    assert not tree.flying
    tree.retry(f"{ROOT}.2")
    assert tree.task_state() is TaskState.BLOCKED, "the failure whose retry was given up blocks as well"


@pytest.mark.ruling("D3", "D4")
def test_in_a_stopped_batch_a_failing_leg_is_not_run_again() -> None:
    tree = batch(delegation("a"), delegation("b", retry=1))
    tree.leg("a", "failed")
    tree.leg("b", "failed")
    assert (tree.jobs[f"{ROOT}.2"].attempt, tree.jobs[f"{ROOT}.2"].state) == (1, JobState.FAILED)


@pytest.mark.ruling("spec:states.merge_conflict", "I1")
def test_branches_that_conflict_block_the_task_whatever_the_policy() -> None:
    tree = batch(delegation("a"), delegation("r", action="review", deps=("a",), failure_policy="continue", retry=2))
    tree.leg("a")
    tree.leg("r", None, conflict="a and b both change x.py")
    assert tree.task_state() is TaskState.BLOCKED
    assert "x.py" in tree.state.task.reason


@pytest.mark.ruling("E2", "D4", "spec:states.vote_not_met", "spec:synthesis.vote")
def test_an_unmet_vote_blocks_and_the_leg_that_voted_no_can_be_run_again() -> None:
    tree = batch(*(delegation(each, action="review", synthesis_rule="vote") for each in "ab"))
    tree.leg("a")
    tree.leg("b", "changes_requested")
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.task.next == f"service job retry {ROOT}.2"
    tree.retry(f"{ROOT}.2")
    tree.leg("b")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("E7", "D4")
@pytest.mark.parametrize("continued", [False, True])
def test_a_coordinator_that_blocked_the_task_can_be_run_again(continued: bool) -> None:
    tree = World(tree_input()).begin()
    if continued:
        tree.coordinator("approved", delegation("a"))
        tree.leg("a")
    tree.coordinator("blocked", reason="no access")
    job_id = tree.state.root.job_id
    tree.retry(job_id)
    assert (tree.last.job_id, tree.last.attempt) == (job_id, 2)
    assert (tree.last.brief is not None) is continued
    tree.coordinator("implemented")
    assert done(tree)


def nested(*legs: Delegation, policy: str | None = None, deeper: tuple[Delegation, ...] = ()) -> World:
    """Return a tree with a leg that coordinates two of its own, beside the given legs."""
    tree = batch(delegation("lead", "lead", failure_policy=policy), *legs)
    tree.leg("lead", "approved", *(deeper or (delegation("x"), delegation("y", deps=("x",)))))
    return tree


@pytest.mark.ruling("D4", "engine:nested")
@pytest.mark.parametrize(("policy", "state"), [(None, "blocked"), ("escalate_human", "awaiting_human")])
def test_a_nested_block_blocks_its_leg_whose_own_policy_decides(policy: str | None, state: str) -> None:
    tree = nested(policy=policy)
    tree.leg("x", "failed")
    assert (tree.named("lead").state, tree.task_state()) == (JobState.BLOCKED, TaskState(state))


@pytest.mark.ruling("D4", "D5", "D6", "engine:nested")
@pytest.mark.parametrize("policy", ["continue", "escalate"])
def test_a_nested_block_that_its_leg_s_policy_forgives_is_told_to_the_coordinator(policy: str) -> None:
    tree = nested(policy=policy)
    tree.leg("x", "failed")
    assert (tree.task_state(), tree.last.continuation) == (TaskState.OPEN, Continuation.NORMAL)
    assert tree.jobs[f"{ROOT}.2"].next == "", "its batch is over: nothing opens it again"


@pytest.mark.ruling("D4", "engine:nested")
def test_the_reason_of_a_block_is_the_first_failure() -> None:
    tree = nested(policy="continue", deeper=(delegation("x"), delegation("y")))
    tree.leg("x", "failed", reason="no compiler")
    tree.leg("y", "failed", reason="no network")
    assert tree.named("lead").reason == "part x failed: no compiler"


@pytest.mark.ruling("D4", "engine:nested")
def test_a_coordinator_below_a_blocked_task_starts_no_leg_and_no_continuation() -> None:
    tree = nested(delegation("b"))
    tree.leg("b", "failed")
    tree.leg("x")
    assert (tree.flying, tree.state.closed) == ({}, True)
    assert tree.jobs[f"{ROOT}.4"].state is JobState.SKIPPED
    tree.retry(f"{ROOT}.2")
    assert [run.delegation_id for run in tree.flying.values()] == ["b", "y"], "what waited starts"
    tree.leg("y")
    assert (tree.last.continuation, tree.last.parent_job_id) == (Continuation.NORMAL, f"{ROOT}.1")


@pytest.mark.ruling("D4", "engine:nested")
def test_what_a_coordinator_returns_after_the_block_is_kept_for_the_retry() -> None:
    tree = batch(delegation("lead", "lead"), delegation("b"))
    tree.leg("b", "failed")
    tree.leg("lead", "approved", delegation("x"))
    assert (tree.flying, tree.state.closed) == ({}, True)
    tree.retry(f"{ROOT}.2")
    assert [run.delegation_id for run in tree.flying.values()] == ["b", "x"]


@pytest.mark.ruling("D3", "D4", "engine:nested")
def test_a_nested_retry_that_the_block_gave_up_comes_after_the_reopening() -> None:
    tree = nested(delegation("b"), deeper=(delegation("x", retry=1),))
    tree.leg("x", "failed")
    tree.leg("b", "failed")
    assert (tree.timers, tree.state.closed) == ({}, True)
    tree.retry(f"{ROOT}.2")
    assert [(run.delegation_id, run.attempt) for run in tree.flying.values()] == [("b", 2), ("x", 2)]


@pytest.mark.ruling("D4", "G2")
@pytest.mark.parametrize("running", [False, True])
def test_a_blocked_task_can_be_killed_and_needs_no_finalize(running: bool) -> None:
    tree = nested(delegation("b"))
    tree.leg("b", "failed")
    if not running:
        tree.leg("x")
    assert tree.state.closed is not running
    tree.kill()
    if running:
        tree.leg("x")
    assert (tree.task_state(), tree.state.closed) == (TaskState.CANCELLED, True)
    assert all(run.continuation is Continuation.NONE for run in tree.runs)
    assert tree.state.task.next == ""
    assert all(not job.next for job in tree.jobs.values())
    assert tree.kill() == [], "twice is one kill"


@pytest.mark.ruling("D4", "G1", "G2")
def test_a_finalized_task_that_stayed_blocked_can_be_dismissed() -> None:
    tree = batch(delegation("a"), bounds=Bounds(max_delegation_total_jobs=1))
    tree.leg("a")
    tree.coordinator("failed")
    assert tree.task_state() is TaskState.BLOCKED
    tree.kill()
    assert (tree.task_state(), tree.state.closed) == (TaskState.CANCELLED, True)
