"""Jobs of a lost or drained host: they go on elsewhere, and that counts neither as a retry nor as a failure (Q5)."""

import pytest

from tests.tree.simulator import ROOT, World, delegation, outcome, play, tokens, tree_input
from workflows.contract.models import HumanQuestion
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState
from workflows.policy.bounds import ledger_of

pytestmark = pytest.mark.ruling("Q5")
A = f"{ROOT}.1"


def tree(*legs: str, bounds: Bounds | None = None, patient: bool = False) -> World:
    """Return a tree whose legs are dispatched."""
    world = World(tree_input(bounds), patient=patient).begin()
    if patient:
        world.begins(ROOT)
    world.coordinator("approved", *(delegation(leg) for leg in legs))
    return world


def test_a_begun_leg_runs_again_as_a_new_attempt_that_is_told_why() -> None:
    world = tree("a", "b")
    world.move(A, reason="its host web-1 is lost")
    run = world.flying[A]
    assert (run.attempt, run.moved_from) == (2, 1)
    assert run.before == "attempt 1 was interrupted: its host web-1 is lost"
    moved = [event for event in world.events if event.kind == "job_moved"]
    assert [event.data for event in moved] == [{"attempt": 1, "begun": True, "reason": "its host web-1 is lost"}]


def test_a_move_costs_no_job_no_retry_and_no_streak_but_keeps_the_tokens() -> None:
    world = tree("a", bounds=Bounds(max_delegation_total_jobs=2))
    spent, ladder = world.state.spent_jobs, world.state.root.ladder
    for _ in range(5):
        world.move(A, usage=tokens(70))
    leg = world.named("a")
    assert (world.flying[A].attempt, leg.retries_used, world.state.spent_jobs) == (6, 0, spent)
    assert world.state.root.ladder == ladder
    assert (world.state.usage.total, world.jobs[A].usage.total) == (350, 350)
    shown = ledger_of(world.state.task, list(world.state.jobs.values()), world.now)
    assert shown == world.state.ledger(), "people are shown what counts"
    world.leg("a")
    assert world.last.continuation is Continuation.NORMAL
    assert world.state.finalize is None


def test_a_leg_that_its_host_had_not_begun_is_offered_again_as_the_attempt_that_it_is() -> None:
    world = tree("a", "b", patient=True)
    first = world.offered[A]
    world.move(A)
    run = world.offered[A]
    assert (run.attempt, run.moved_from, run.offer > first.offer) == (1, 0, True)
    assert [event.data["begun"] for event in world.events if event.kind == "job_moved"] == [False]


@pytest.mark.parametrize("begun", [True, False])
def test_a_coordinator_goes_on_elsewhere_with_its_brief(begun: bool) -> None:
    world = tree("a", patient=True)
    world.begins(A)
    world.leg("a")
    job_id = world.state.root.job_id
    brief = world.offered[job_id].brief
    if begun:
        world.begins(job_id)
    world.move(job_id)
    run = world.offered[job_id]
    assert (run.attempt, run.moved_from) == ((2, 1) if begun else (1, 0))
    assert run.brief is not None
    assert run.brief.legs == (brief.legs if brief else None)
    assert [each for each in run.brief.notes if "is lost" in each] == (
        ["attempt 1 was interrupted: its host is lost"] if begun else []
    )


def test_an_outcome_of_the_attempt_that_moved_counts_for_nothing() -> None:
    world = tree("a")
    first = world.flying[A]
    world.move(A)
    assert world.end(A, "approved", attempt=first.attempt) == []
    assert world.flying[A].attempt == 2


def test_an_attempt_that_goes_on_on_a_branch_does_so_elsewhere() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a", failure_policy="escalate_human"))
    world.leg("a", "blocked", branch="service/work", human_questions=(HumanQuestion(id="q", prompt="which?"),))
    world.resume("answer", "this")
    world.coordinator("approved", delegation("b"))
    world.state.root.batch.legs["b"].own_branch = "service/work"  # type: ignore[union-attr]
    world.move(world.state.root.batch.legs["b"].job_id)  # type: ignore[union-attr]
    assert world.last.own_branch == "service/work"


@pytest.mark.ruling("G1", "G2")
def test_in_a_tree_that_ends_only_the_finalize_runs_again() -> None:
    world = tree("a", "b")
    world.kill()
    world.move(A)
    assert world.jobs[A].state is JobState.CANCELLED
    world.leg("b")
    final = world.last
    assert final.continuation is Continuation.FINALIZE
    world.move(final.job_id)
    assert (world.last.job_id, world.last.attempt) == (final.job_id, 2)
    world.end(final.job_id)
    assert world.task_state() is TaskState.CANCELLED


@pytest.mark.ruling("D4")
def test_in_a_blocked_task_it_waits_for_the_retry() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("n", "lead"), delegation("bad"))
    world.leg("n", "approved", delegation("deep"))
    world.leg("bad", "failed")
    deep = next(run.job_id for run in world.flying.values() if run.delegation_id == "deep")
    world.move(deep)
    assert (world.state.closed, world.jobs[deep].state) == (True, JobState.SKIPPED)
    world.retry(f"{ROOT}.2")
    assert (world.flying[deep].attempt, world.flying[deep].moved_from) == (2, 1)


@pytest.mark.ruling("F8")
def test_a_paused_tree_starts_nothing_elsewhere_either() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("n", "lead"), delegation("q", failure_policy="escalate_human"))
    world.leg("n", "approved", delegation("deep"))
    world.leg("deep")
    nested = world.last.job_id
    world.leg("q", "failed")
    world.move(nested)
    assert (world.flying, world.jobs[nested].state) == ({}, JobState.QUEUED)
    world.resume("continue")
    assert (world.flying[nested].attempt, world.flying[nested].moved_from) == (2, 1)


@pytest.mark.ruling("F8")
def test_an_offer_that_a_pause_takes_back_is_given_back_and_not_offered_elsewhere() -> None:
    world = tree("a", "b", patient=True)
    world.begins(A)
    world.leg("a", human_questions=(HumanQuestion(id="q", prompt="which?"),))
    assert world.asked_back == {f"{ROOT}.2"}
    world.move(f"{ROOT}.2")
    assert world.offered == {}
    assert [event.kind for event in world.events if event.kind in ("job_moved", "job_taken_back")] == ["job_taken_back"]


@pytest.mark.parametrize("moment", range(7))
def test_whenever_all_hosts_are_lost_the_tree_comes_to_the_end_it_would_have_had(moment: int) -> None:
    legs = (delegation("a"), delegation("b", deps=("a",)), delegation("n", "lead"))

    def answer(run: JobRun) -> JobOutcome:
        if run.parent_job_id is None:
            return outcome(run, "approved", *legs)
        return outcome(run, "approved", *([delegation("deep")] if run.delegation_id == "n" else []))

    world, left = World(tree_input()).begin(), moment

    def then_lost(run: JobRun) -> JobOutcome:
        nonlocal left
        left -= 1
        if left == -1:
            for job_id in list(world.flying):
                world.move(job_id)
            return answer(world.flying[run.job_id])
        return answer(run)

    play(world, then_lost)
    assert world.task_state() is TaskState.DONE
    assert len([run for run in world.runs if (run.job_id, run.attempt) not in world.moved]) == 7
