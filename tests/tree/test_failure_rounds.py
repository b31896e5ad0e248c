from typing import Any

import pytest

from tests.tree.simulator import ROOT, World, delegation, done, tokens, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState


def batch(*legs: Delegation, bounds: Bounds | None = None) -> World:
    tree = World(tree_input(bounds)).begin()
    tree.coordinator("approved", *legs)
    return tree


def human(leg: str, agent: str = "coder", **fields: object) -> Delegation:
    return delegation(leg, agent, "implement", failure_policy="escalate_human", **fields)


@pytest.mark.ruling("F3", "D7", "B3", "spec:states.escalate_human")
@pytest.mark.parametrize("ended", ["failed", "blocked", None])
def test_a_failure_pauses_the_task_running_siblings_end_and_nothing_starts(ended: str | None) -> None:
    tree = batch(human("a"), delegation("b"), delegation("c", deps=("b",)), delegation("d", deps=("a",)))
    tree.leg("a", ended, reason="no compiler")
    assert tree.task_state() is TaskState.AWAITING_HUMAN
    assert tree.state.task.next == f"service resume {ROOT} retry"
    assert "no compiler" in tree.state.task.reason
    assert tree.jobs[f"{ROOT}.1"].next == f"service resume {ROOT} retry"
    tree.leg("b")
    assert tree.flying == {}
    assert [tree.named(each).state for each in "cd"] == [JobState.QUEUED] * 2, "neither started nor given up"


@pytest.mark.ruling("F3", "F1")
def test_further_failures_join_the_round() -> None:
    tree = batch(human("a"), human("b"), delegation("c", failure_policy="continue"))
    tree.leg("a", "failed")
    seen = tree.open()[0].digest
    tree.leg("b", "failed")
    tree.leg("c", "failed")
    [joined] = tree.open()
    assert [each.leg for each in joined.failing] == ["a", "b"]
    assert (joined.number, joined.digest == seen) == (1, False)
    tree.resume("retry", digest=seen)
    assert tree.said[-1].data["why"] == "stale_round"
    tree.resume("retry", digest=joined.digest[:12])
    assert sorted(tree.flying) == [f"{ROOT}.1", f"{ROOT}.2"], "every failed leg of the round"


@pytest.mark.ruling("F3", "C3", "spec:states.resume_retry")
def test_retry_folds_the_instructions_in_any_number_of_times() -> None:
    tree = batch(human("a"), delegation("b", deps=("a",)))
    for attempt in (2, 3, 4):
        tree.leg("a", "failed")
        assert tree.open()[0].number == attempt - 1
        tree.resume("retry", f"try {attempt}")
        assert (tree.last.job_id, tree.last.attempt) == (f"{ROOT}.1", attempt)
        assert tree.last.guidance == tuple(f"try {n}" for n in range(2, attempt + 1))
    assert tree.state.spent_jobs == 5, "re-runs count"
    tree.leg("a")
    assert tree.last.delegation_id == "b"
    tree.leg("b")
    assert tree.last.continuation is Continuation.NORMAL
    assert tree.last.guidance == ()
    assert not tree.last.brief or not tree.last.brief.approved


@pytest.mark.ruling("F3", "D3")
def test_a_leg_s_own_retries_come_before_the_person() -> None:
    tree = batch(human("a", retry=1))
    tree.leg("a", "failed")
    assert tree.open() == []
    tree.fire()
    tree.leg("a", "failed")
    assert len(tree.open()) == 1


@pytest.mark.ruling("F3", "C3")
def test_a_retry_that_would_cross_the_job_budget_is_refused_and_the_round_stays() -> None:
    tree = batch(human("a"), bounds=Bounds(max_delegation_total_jobs=1))
    tree.leg("a", "failed")
    tree.resume("retry")
    refused = tree.said[-1]
    assert (refused.kind, refused.data["why"]) == ("resume_refused", "no_room")
    assert "per-root job budget of 1" in refused.message
    assert refused.message.endswith("still takes abort, extend")
    [still] = tree.open()
    assert still.verbs == ("abort", "extend"), "what can never succeed is not offered"
    assert not any("retry" in command or "continue" in command for command in still.commands)


@pytest.mark.ruling("F3", "C3")
def test_a_continue_for_whose_continuation_no_job_is_left_is_refused_and_the_round_stays() -> None:
    tree = batch(human("a"), bounds=Bounds(max_delegation_total_jobs=1))
    tree.leg("a", "failed")
    tree.resume("continue")
    refused = tree.said[-1]
    assert (refused.kind, refused.data["why"]) == ("resume_refused", "no_room")
    assert "a continue would exceed the per-root job budget of 1" in refused.message
    assert len(tree.open()) == 1
    tree.resume("abort")
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("F3", "C4")
@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        (Bounds(max_delegation_token_budget=10), "used 10 of its 10 tokens"),
        (Bounds(max_delegation_cost_usd=0.00001), "has cost"),
    ],
)
def test_a_retry_is_neither_offered_nor_taken_once_any_budget_is_spent(bounds: Bounds, why: str) -> None:
    tree = batch(human("a"), bounds=bounds)
    tree.leg("a", "failed", usage=tokens(10))
    [still] = tree.open()
    assert still.verbs == ("continue", "abort", "extend"), "its continuation runs, and can sum up"
    tree.resume("retry")
    refused = tree.said[-1]
    assert (refused.kind, refused.data["why"]) == ("resume_refused", "no_room"), "a refused order is no tripped bound"
    assert why in refused.message
    assert refused.message.endswith("still takes continue, abort, extend")
    assert len(tree.open()) == 1


@pytest.mark.ruling("F4")
def test_in_a_replay_a_refused_order_has_the_event_that_an_earlier_release_wrote() -> None:
    tree = batch(human("a"), bounds=Bounds(max_delegation_total_jobs=1))
    tree.leg("a", "failed")
    tree.resume("retry", answers=False)
    assert [each.kind for each in tree.said[-2:]] == ["resume_refused", "delegation_budget_exceeded"]


@pytest.mark.ruling("F3", "F4", "C3")
def test_a_round_whose_retry_lost_its_room_meanwhile_offers_it_no_longer() -> None:
    tree = batch(human("a"), delegation("b", retry=1), bounds=Bounds(max_delegation_total_jobs=3))
    tree.leg("a", "failed")
    assert "retry" in tree.open()[0].verbs
    tree.leg("b", "failed")
    assert "retry" not in tree.open()[0].verbs


@pytest.mark.ruling("F3", "C3")
def test_as_many_legs_run_again_as_the_job_budget_has_room_for() -> None:
    tree = batch(human("a"), human("b"), bounds=Bounds(max_delegation_total_jobs=3))
    tree.leg("a", "failed")
    tree.leg("b", "failed")
    tree.resume("retry")
    assert list(tree.flying) == [f"{ROOT}.1"]
    assert "delegation_budget_exceeded" in tree.kinds()
    assert (tree.named("b").state, tree.open()) == (JobState.FAILED, [])


@pytest.mark.ruling("F3", "C4", "spec:states.resume_continue")
@pytest.mark.parametrize("rule", ["vote", "quorum"])
def test_continue_goes_on_approved_and_no_vote_or_quorum_blocks(rule: str) -> None:
    more: dict[str, Any] = {"synthesis_rule": rule, "quorum": 2 if rule == "quorum" else None}
    tree = batch(human("a", **more), delegation("b"), delegation("c", deps=("a",)))
    tree.leg("a", "failed")
    tree.leg("b", "changes_requested")
    tree.resume("continue", "ship it")
    assert (tree.last.continuation, tree.task_state()) == (Continuation.NORMAL, TaskState.OPEN)
    assert tree.named("c").state is JobState.SKIPPED
    assert tree.last.brief is not None
    assert (tree.last.brief.approved, tree.last.brief.guidance) == (True, "ship it")


@pytest.mark.ruling("F3", "E4", "E5")
def test_an_approved_batch_is_still_verified() -> None:
    tree = batch(human("a"), delegation("v", action="review", synthesis_rule="verify"))
    tree.leg("a", "failed")
    tree.leg("v", "changes_requested")
    tree.resume("continue")
    assert tree.last.continuation is Continuation.REPLAN


@pytest.mark.ruling("F3", "G1", "spec:states.resume_abort")
def test_abort_goes_to_the_finalize_which_is_told_why() -> None:
    tree = batch(human("a"), delegation("b"))
    tree.leg("a", "failed")
    tree.resume("abort", "not worth it")
    assert tree.task_state() is TaskState.OPEN
    assert list(tree.flying) == [f"{ROOT}.2"], "what runs ends first"
    tree.leg("b")
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    assert tree.last.brief.guidance == "not worth it"
    assert "aborted by ann, in the terminal" in tree.last.brief.notes[-1]
    assert tree.rounds[f"{ROOT}-r1"].end is RoundEnd.ABORTED
    tree.coordinator("blocked")
    assert tree.state.closed


@pytest.mark.ruling("F3", "F1")
def test_a_failure_during_an_ask_round_is_decided_after_it() -> None:
    tree = batch(delegation("a"), human("b"))
    tree.leg("a", human_questions=(HumanQuestion(id="q", prompt="?"),))
    tree.leg("b", "failed")
    assert [each.kind for each in tree.open()] == [RoundKind.ASK]
    tree.resume("answer", "q: one")
    assert [(each.kind, each.number) for each in tree.open()] == [(RoundKind.FAILURE, 2)]
    assert tree.flying == {}
    tree.resume("retry", "again")
    assert tree.last.guidance == ("again",)
    tree.leg("b")
    assert tree.last.continuation is Continuation.ANSWERED


@pytest.mark.ruling("F3", "F1")
def test_a_nested_coordinator_s_leg_escalates_to_that_coordinator() -> None:
    tree = batch(human("lead", agent="lead"))
    tree.leg("lead", "approved", human("x"))
    tree.leg("x", "failed")
    assert [each.coordinator_id for each in tree.open()] == [f"{ROOT}.1"]
    tree.resume("continue", job_id=ROOT)
    assert tree.last.parent_job_id == f"{ROOT}.1"
    tree.end(tree.last.job_id, "failed")
    assert [(each.coordinator_id, each.failing[0].leg) for each in tree.open()] == [(ROOT, "lead")]
    tree.resume("retry", "smaller")
    assert (tree.last.job_id, tree.last.guidance) == (f"{ROOT}.1", ("smaller",))
    tree.leg("lead", "approved", delegation("y"))
    tree.leg("y")
    assert tree.last.brief is not None
    assert tree.last.brief.orders == ("smaller",)
    tree.end(tree.last.job_id)
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("F9", "G2")
@pytest.mark.parametrize("running", [False, True])
def test_kill_of_a_paused_tree_finalizes_at_once(running: bool) -> None:
    tree = batch(human("a"), delegation("b"))
    tree.leg("a", "failed")
    if not running:
        tree.leg("b")
    tree.kill()
    assert (tree.open(), tree.rounds[f"{ROOT}-r1"].end) == ([], RoundEnd.KILLED)
    assert not tree.timers
    if running:
        tree.leg("b")
    assert tree.last.continuation is Continuation.FINALIZE
    tree.coordinator("blocked")
    assert tree.task_state() is TaskState.CANCELLED
    tree.resume("retry")
    assert tree.state.closed


@pytest.mark.ruling("F9", "F2")
@pytest.mark.parametrize("legs", [0, 1])
def test_kill_while_the_root_asks_drops_what_was_held_and_finalizes(legs: int) -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", *[delegation("a")][:legs], human_questions=(HumanQuestion(id="q", prompt="?"),))
    tree.kill()
    assert tree.last.continuation is Continuation.FINALIZE
    assert ("delegation_dropped" in tree.kinds()) == bool(legs)
    assert tree.last.brief is not None
    assert [each.text for each in tree.last.brief.answers] == [None]
