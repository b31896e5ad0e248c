import pytest

from tests.tree.simulator import ROOT, World, delegation, done, tokens, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.event_kinds import TELLS_PEOPLE
from workflows.model.long_texts import LongPrompt
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.policy.prompts.continuation import render_continuation, wanted_digests
from workflows.tree.details import details
from workflows.tree.events import KillRequested, TreeStarted
from workflows.tree.reducer import reduce


def batch(*legs: Delegation, bounds: Bounds | None = None) -> World:
    tree = World(tree_input(bounds)).begin()
    tree.coordinator("approved", *legs)
    return tree


@pytest.mark.ruling("G2", "spec:events.delegation_killed", "spec:states.kill")
def test_kill_cancels_what_waits_lets_run_what_runs_then_finalizes() -> None:
    tree = batch(delegation("a"), delegation("b", deps=("a",)))
    tree.kill()
    assert tree.kinds() == ["delegation_killed"]
    assert tree.said[0].data["actor"] == "ann"
    assert tree.named("b").state is JobState.CANCELLED
    assert not tree.cancelled
    tree.leg("a")
    assert tree.last.continuation is Continuation.FINALIZE
    tree.coordinator("approved")
    assert tree.task_state() is TaskState.CANCELLED
    assert tree.close is not None
    assert tree.close.decision == "approved", "its decision is the task's outcome"


@pytest.mark.ruling("G2")
def test_kill_twice_is_one_kill_and_now_cancels_what_runs() -> None:
    tree = batch(delegation("a"), delegation("b"))
    tree.kill()
    tree.kill(immediate=True)
    assert tree.kinds().count("delegation_killed") == 1
    assert tree.cancelled == [f"{ROOT}.1", f"{ROOT}.2"]
    tree.leg("a", None, state="cancelled")
    tree.leg("b", None, state="cancelled")
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.task_state() is TaskState.OPEN, "a cancelled leg of a killed tree meets no policy"


@pytest.mark.ruling("G2")
def test_kill_with_only_a_retry_pending_finalizes_at_once() -> None:
    tree = batch(delegation("a", retry=1))
    tree.leg("a", "failed")
    tree.kill()
    assert tree.last.continuation is Continuation.FINALIZE
    assert not tree.timers


@pytest.mark.ruling("G2", "C1")
def test_delegations_of_a_killed_tree_are_dropped_and_a_plain_end_needs_no_finalize() -> None:
    tree = World(tree_input()).begin()
    tree.kill()
    tree.coordinator("approved", delegation("a"))
    assert tree.kinds()[:2] == ["delegation_killed", "delegation_dropped"]
    assert tree.last.continuation is Continuation.FINALIZE
    other = World(tree_input()).begin()
    other.kill()
    other.coordinator("implemented")
    assert (other.state.closed, len(other.runs)) == (True, 1)
    assert other.task_state() is TaskState.CANCELLED


@pytest.mark.ruling("G2")
def test_a_tree_killed_before_it_started_never_runs() -> None:
    tree = World(tree_input())
    tree.feed(KillRequested(now=1000, actor="ann"))
    assert (tree.state.closed, tree.runs) == (True, [])
    assert reduce(tree.state, TreeStarted(now=1001)) == []


@pytest.mark.ruling("G1", "spec:events.delegation_finalized", "spec:states.finalize_is_terminal")
def test_what_the_finalize_asks_for_is_ignored_and_that_is_said() -> None:
    tree = batch(delegation("a"), bounds=Bounds(max_delegation_width=1))
    tree.leg("a")
    tree.coordinator("approved", delegation("b"), delegation("c"))
    asks = (HumanQuestion(id="q", prompt="which?"),)
    tree.coordinator("approved", delegation("d"), human_questions=asks)
    assert tree.kinds()[-2:] == ["delegation_finalized", "human_questions_ignored"]
    assert (done(tree), len(tree.runs)) == (True, 4)


@pytest.mark.ruling("G1", "G2")
def test_the_first_reason_to_finalize_stands() -> None:
    tree = batch(
        delegation("a"), delegation("b"), delegation("c", deps=("a",)), bounds=Bounds(max_delegation_token_budget=5)
    )
    tree.leg("a", usage=tokens(5))
    tree.kill()
    tree.leg("b")
    [enqueued] = [event for event in tree.events if event.kind == "delegation_finalize_enqueued"]
    assert enqueued.data["cause"] == "delegation_cost_exceeded"
    assert tree.named("c").state is JobState.SKIPPED


@pytest.mark.ruling("G1", "E7")
@pytest.mark.parametrize("decision", ["blocked", "failed", None])
def test_a_finalize_that_fails_leaves_the_task_blocked_for_good(decision: str | None) -> None:
    tree = batch(delegation("a"), delegation("b"), bounds=Bounds(max_delegation_width=1))
    tree.coordinator(decision)
    assert tree.task_state() is TaskState.BLOCKED
    tree.retry(tree.state.root.job_id)
    assert tree.said[-1].kind == "retry_refused"


@pytest.mark.ruling("B3", "G1")
@pytest.mark.parametrize("decision", ["blocked", "failed", None])
def test_a_finalize_that_ends_badly_is_told_and_stands_until_it_is_dismissed(decision: str | None) -> None:
    tree = batch(delegation("a"), delegation("b"), bounds=Bounds(max_delegation_width=1))
    tree.coordinator(decision)
    [blocked] = [event for event in tree.events if event.kind == "task_blocked"]
    assert (blocked.job_id, blocked.message) == (tree.last.job_id, tree.state.task.reason)
    assert blocked.kind in TELLS_PEOPLE
    assert tree.state.task.waits_for is WaitsFor.DISMISS
    assert "service agent implement lead 'reach the goal' --repo repo" in tree.state.task.next
    assert f"service job dismiss {ROOT}" in tree.state.task.next


def nested(bounds: Bounds | None = None, **fields: object) -> World:
    """Return a tree whose root delegates to a lead, which delegates too, and to a sibling that runs meanwhile."""
    tree = batch(
        delegation("lead", "lead", "implement", **fields), delegation("side", failure_policy="continue"), bounds=bounds
    )
    tree.leg("lead", "approved", delegation("x"), delegation("y", deps=("x",)))
    return tree


@pytest.mark.ruling("C2", "D1", "B1", "engine:nested")
def test_a_delegated_coordinator_s_leg_ends_with_its_chain() -> None:
    tree = nested()
    x = next(run for run in tree.flying.values() if run.delegation_id == "x")
    assert (x.delegation_depth, x.parent_job_id, x.job_id) == (2, f"{ROOT}.1", f"{ROOT}.3")
    tree.leg("side")
    tree.leg("x")
    tree.leg("y")
    continuation = tree.last
    assert (continuation.continuation, continuation.parent_job_id, continuation.delegation_depth) == (
        Continuation.NORMAL,
        f"{ROOT}.1",
        2,
    )
    assert continuation.brief is not None
    assert continuation.brief.assignment is not None
    assert tree.named("lead").state is JobState.RUNNING
    tree.end(continuation.job_id, "implemented", summary="all of it is done")
    assert tree.named("lead").state is JobState.SUCCEEDED
    brief = tree.last.brief
    assert brief is not None
    assert brief.legs[0].summary == "all of it is done"
    assert (tree.last.parent_job_id, tree.last.delegation_depth) == (ROOT, 1)


@pytest.mark.ruling("D4", "D5", "engine:nested")
def test_a_blocked_delegated_coordinator_is_a_blocked_leg_and_meets_its_policy() -> None:
    tree = nested(failure_policy="continue")
    tree.leg("x", "failed")
    assert tree.named("lead").state is JobState.BLOCKED
    assert tree.task_state() is TaskState.OPEN
    tree.leg("side")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("E7", "engine:nested")
@pytest.mark.parametrize("decision", ["blocked", "failed"])
def test_a_delegated_coordinator_that_gives_up_is_a_failing_leg(decision: str) -> None:
    tree = nested()
    tree.leg("side")
    tree.leg("x")
    tree.leg("y")
    tree.end(tree.last.job_id, decision, reason="no way")
    assert tree.named("lead").state.value == decision
    assert tree.task_state() is TaskState.BLOCKED


@pytest.mark.ruling("D4", "engine:nested")
def test_a_deep_leg_that_blocked_the_task_is_run_again_and_everything_above_is_open_again() -> None:
    tree = nested()
    tree.leg("side")
    tree.leg("x", "failed")
    assert (tree.task_state(), tree.state.closed) == (TaskState.BLOCKED, True)
    assert tree.state.task.next == f"service job retry {ROOT}.3"
    tree.retry(f"{ROOT}.3")
    tree.leg("x")
    tree.leg("y")
    tree.end(tree.last.job_id, "implemented")
    assert tree.named("lead").state is JobState.SUCCEEDED
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("D3", "engine:nested")
def test_a_leg_whose_chain_failed_is_run_again_as_a_new_chain() -> None:
    tree = nested(retry=1)
    tree.leg("x", "failed")
    assert tree.named("lead").attempt == 2
    tree.fire()
    tree.leg("lead", "approved", delegation("x"))
    assert tree.last.delegation_id == "x"
    assert tree.last.job_id == f"{ROOT}.5"


@pytest.mark.ruling("G1", "engine:nested")
def test_a_bound_tripped_in_a_delegated_coordinator_finalizes_the_tree_once_others_are_done() -> None:
    tree = nested(Bounds(max_delegation_depth=3))
    tree.leg("x")
    tree.leg("y")
    continuation = tree.last.job_id
    tree.end(continuation, "approved", delegation("a", "lead"))
    tree.leg("a", "approved", delegation("deeper"))
    assert "delegation_depth_exceeded" in tree.kinds()
    assert all(run.continuation is not Continuation.FINALIZE for run in tree.runs), "the sibling still runs"
    tree.leg("side", "failed")
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    assert [leg.id for leg in tree.last.brief.legs] == ["lead", "side", "x", "y", "a"]
    tree.coordinator("implemented")
    assert done(tree)
    assert tree.kinds().count("delegation_finalize_enqueued") == 1


def refused(tree: World) -> list[str]:
    """Return the legs that the finalize prompt lists as not dispatched."""
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    return [leg.id for each in tree.last.brief.refused for leg in each.delegations]


@pytest.mark.ruling("E6", "C1", "C4")
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(max_delegation_width=1),
        Bounds(max_delegation_depth=1),
        Bounds(max_delegation_total_jobs=2),
        Bounds(max_delegation_wall_clock_seconds=1),
        Bounds(max_delegation_token_budget=5),
        Bounds(max_delegation_cost_usd=0.00001),
    ],
)
def test_a_finalize_is_told_every_set_a_bound_refused_complete(bounds: Bounds) -> None:
    tree = World(tree_input(bounds)).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a", usage=tokens(10))
    long = {"z": LongPrompt(digest="d-long", folded="f")}
    tree.coordinator("approved", delegation("y"), delegation("z"), long_prompts=long)
    assert refused(tree) == ["y", "z"]
    assert tree.last.brief is not None
    assert tree.last.brief.refused[0].long_prompts == {"z": "d-long"}
    assert "d-long" in wanted_digests(tree.last.brief)
    line = tree.last.brief.budget
    assert (line.jobs, line.jobs_cap) == (tree.state.spent_jobs, bounds.max_delegation_total_jobs)
    assert line.jobs <= line.jobs_cap
    assert line.depth <= line.depth_cap


@pytest.mark.ruling("E6", "C6", "H2")
def test_a_finalize_is_told_the_set_that_preflight_or_the_ladder_refused_last() -> None:
    for agent in ("ghost", "coder"):
        tree = World(tree_input()).begin()
        tree.coordinator("approved", delegation("a", agent))
        while tree.last.continuation is not Continuation.FINALIZE:
            if tree.last.delegation_id:
                tree.leg("a")
            tree.coordinator("approved", delegation("a", agent))
        assert refused(tree) == ["a"]


@pytest.mark.ruling("E6", "G2")
def test_a_finalize_is_told_what_came_back_while_the_tree_was_ending() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("left", "lead"), delegation("right", "lead"))
    tree.kill()
    tree.leg("left", "approved", delegation("x"))
    tree.leg("right", "approved", delegation("x"), delegation("y"))
    assert refused(tree) == ["x", "x", "y"]
    assert tree.last.brief is not None
    text = render_continuation(tree.last.brief, {})
    assert f"(returned by `{ROOT}.1`), complete" in text
    assert f"(returned by `{ROOT}.2`), complete" in text


@pytest.mark.ruling("C3", "C4")
def test_a_finalize_is_outside_the_count_that_prompts_and_people_are_shown() -> None:
    tree = World(tree_input(Bounds(max_delegation_total_jobs=3))).begin()
    tree.coordinator("approved", delegation("a"), delegation("b"))
    tree.leg("a")
    tree.leg("b")
    tree.coordinator("approved", delegation("c"))
    assert refused(tree) == ["c"]
    assert tree.last.brief is not None
    assert "Jobs 3 of 3;" in render_continuation(tree.last.brief, {})
    assert tree.state.ledger().jobs == 3


@pytest.mark.ruling("spec:inline_artifact_bodies", "G1")
def test_a_leg_s_body_is_named_in_the_folder_of_the_job_that_delegated_it() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", "lead"))
    tree.leg("a", "approved", delegation("a"), artifact_digest="outer")
    tree.leg("a", artifact_digest="inner")
    tree.kill()
    tree.end(tree.last.job_id, artifact_digest="outer")
    assert tree.last.brief is not None
    assert [(each.id, each.parent_job_id) for each in tree.last.brief.legs] == [("a", ROOT), ("a", f"{ROOT}.1")]


@pytest.mark.ruling("G2", "B3")
@pytest.mark.parametrize("blocked", [False, True])
def test_a_killed_tree_whose_runs_still_end_says_so_and_what_finishes_it(blocked: bool) -> None:
    tree = batch(delegation("a"), delegation("b"), delegation("c"))
    if blocked:
        tree.leg("c", "failed")
    tree.kill()
    task = tree.state.task
    assert task.why
    assert "is being ended: killed by " in f"{task.why} {task.next}"
    assert "what runs finishes first" in task.next
    assert task.next.endswith(f"service job kill {ROOT} --now")
    assert task.waits_for is WaitsFor.RUNS
    assert task.next in details(tree.state)
    tree.leg("a")
    assert tree.state.task.next == task.next
    tree.leg("b")
    if not blocked:
        tree.leg("c")
        tree.coordinator("approved")
    assert tree.task_state() is TaskState.CANCELLED
    assert (tree.state.task.next, tree.state.task.waits_for) == ("", WaitsFor.NOTHING)
