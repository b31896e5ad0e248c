"""Offers: a job is queued until its host has begun it; before, whatever stops the tree takes it back (ruling B5)."""

import pytest

from tests.tree.simulator import ROOT, World, delegation, outcome, tree_input
from workflows.contract.models import HumanQuestion
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState
from workflows.tree.events import JobBegun, JobEnded, JobHeldUp

pytestmark = pytest.mark.ruling("B5")
ASKS = (HumanQuestion(id="q", prompt="which?"),)


def waiting(*legs: str, begun: int = 0, bounds: Bounds | None = None, agent: str = "coder") -> World:
    """Return a batch of these legs on a host that has begun the first of them, and has no slot for the others."""
    world = World(tree_input(bounds), patient=True).begin()
    world.begins(ROOT)
    world.coordinator("approved", *(delegation(leg, agent) for leg in legs))
    for leg in list(world.offered)[:begun]:
        world.begins(leg)
    return world


def give_back_all(world: World) -> None:
    while world.asked_back:
        world.give_back(next(iter(world.asked_back)))


def states(world: World) -> dict[str, str]:
    return {job.delegation_id: job.state.value for job in world.state.jobs.values() if job.delegation_id}


def test_it_is_queued_with_a_reason_until_its_host_has_begun_it_and_started_then() -> None:
    world = waiting("a", "b")
    job = world.state.jobs[f"{ROOT}.1"]
    assert (job.state, job.reason, job.started_at) == (JobState.QUEUED, "waits for its host to start it", None)
    run = world.offered[f"{ROOT}.1"]
    world.flying[run.job_id] = world.offered.pop(run.job_id)
    world.feed(JobBegun(now=world.now + 50, job_id=run.job_id, offer=run.offer, at=world.now + 20))
    job = world.state.jobs[f"{ROOT}.1"]
    assert (job.state, job.reason, job.started_at) == (JobState.RUNNING, "", world.now - 30)
    assert states(world) == {"a": "running", "b": "queued"}


def test_the_first_job_is_queued_for_one_reason() -> None:
    world = World(tree_input(), patient=True).begin()
    [queued] = [event.message for event in world.events if event.kind == "job_queued"]
    assert queued == f"first job (lead implement) is queued: {world.state.jobs[ROOT].reason}"


def test_no_job_begins_before_it_was_queued() -> None:
    world = waiting("a")
    run = world.offered[f"{ROOT}.1"]
    world.flying[run.job_id] = world.offered.pop(run.job_id)
    world.feed(JobBegun(now=world.now, job_id=run.job_id, offer=run.offer, at=world.now - 50))
    job = world.state.jobs[f"{ROOT}.1"]
    assert job.started_at == job.queued_at


@pytest.mark.ruling("G2.stops", "F3")
@pytest.mark.parametrize("how", ["pause", "block", "kill"])
def test_what_has_begun_is_not_stopped_even_if_the_tree_has_not_heard_of_it(how: str) -> None:
    world = waiting("a", "b", "c", begun=1)
    world.begins(f"{ROOT}.2", reported=False)
    match how:
        case "pause":
            world.leg("a", human_questions=ASKS)
        case "block":
            world.leg("a", None)
        case _:
            world.kill()
    give_back_all(world)
    assert (states(world)["b"], world.cancelled) == ("running", [])
    assert f"{ROOT}.3" not in world.offered


@pytest.mark.ruling("G1", "G2")
def test_a_finalize_that_is_stopped_before_it_began_is_over() -> None:
    world = waiting("a")
    world.kill()
    give_back_all(world)
    world.kill(immediate=True)
    give_back_all(world)
    assert (world.offered, world.state.closed, world.task_state()) == ({}, True, TaskState.CANCELLED)


def test_an_outcome_of_an_earlier_attempt_ends_no_offer() -> None:
    world = World(tree_input(), patient=True).begin()
    world.begins(ROOT)
    world.coordinator("approved", delegation("a", retry=1))
    world.begins(f"{ROOT}.1")
    first = world.flying[f"{ROOT}.1"]
    world.end(first.job_id, "failed")
    world.fire()
    world.feed(JobEnded(now=world.now, outcome=outcome(first, "implemented", begun_at=world.now)))
    job = world.state.jobs[first.job_id]
    assert (job.state, job.attempt) == (JobState.QUEUED, 2)
    assert list(world.offered) == [first.job_id]


@pytest.mark.ruling("G1", "G2")
def test_a_kill_has_back_what_waits_and_comes_to_its_finalize_while_others_hold_every_place() -> None:
    world = waiting("a", "b", "c")
    world.kill()
    assert world.asked_back == {f"{ROOT}.1", f"{ROOT}.2", f"{ROOT}.3"}
    give_back_all(world)
    assert set(states(world).values()) == {"cancelled"}
    [finalize] = world.offered.values()
    assert finalize.continuation is Continuation.FINALIZE
    world.begins(finalize.job_id)
    world.end(finalize.job_id)
    assert world.task_state() is TaskState.CANCELLED


@pytest.mark.ruling("G2")
def test_what_its_host_begins_first_runs_to_its_end() -> None:
    world = waiting("a", "b")
    world.kill()
    world.begins(f"{ROOT}.1")
    give_back_all(world)
    assert states(world) == {"a": "running", "b": "cancelled"}
    world.end(f"{ROOT}.1")
    assert states(world) == {"a": "succeeded", "b": "cancelled"}
    killed = next(event for event in world.events if event.kind == "delegation_killed")
    assert killed.data["asked_back"] == [f"{ROOT}.1", f"{ROOT}.2"], "what becomes of them was not known yet"
    assert killed.data["cancelled"] == killed.data["running"] == []


@pytest.mark.ruling("G2")
def test_a_kill_at_once_also_stops_what_has_begun() -> None:
    world = waiting("a", "b", begun=1)
    world.kill(immediate=True)
    assert sorted(world.cancelled) == [f"{ROOT}.1", f"{ROOT}.2"]
    give_back_all(world)
    world.end(f"{ROOT}.1", None, state=JobState.CANCELLED)
    assert states(world) == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.ruling("G2")
def test_a_tree_that_is_killed_before_its_root_has_begun_has_nothing_to_sum_up() -> None:
    world = World(tree_input(), patient=True).begin()
    world.kill()
    give_back_all(world)
    assert (world.task_state(), world.state.closed, world.runs) == (TaskState.CANCELLED, True, [])


@pytest.mark.ruling("F8")
def test_a_pause_has_back_what_waits_and_offers_it_again_when_it_is_over() -> None:
    world = waiting("a", "b", "c", begun=1)
    world.end(f"{ROOT}.1", human_questions=ASKS)
    give_back_all(world)
    assert (world.offered, states(world)) == ({}, {"a": "succeeded", "b": "queued", "c": "queued"})
    first = {job_id: offer for job_id, _, offer in world.given_back}
    world.resume("answer", "this")
    assert sorted(world.offered) == [f"{ROOT}.2", f"{ROOT}.3"]
    assert all(run.attempt == 1 and run.offer > first[job_id] for job_id, run in world.offered.items())
    for job_id in (f"{ROOT}.2", f"{ROOT}.3"):
        world.begins(job_id)
        world.end(job_id)
    assert [run.continuation for run in world.offered.values()] == [Continuation.ANSWERED]


@pytest.mark.ruling("F8")
def test_a_continuation_that_waits_is_held_back_by_another_coordinators_pause() -> None:
    world = waiting("one", "two", begun=2, agent="lead")
    world.leg("one", "approved", delegation("x"))
    world.begins(f"{ROOT}.3")
    world.end(f"{ROOT}.3")
    [continuation] = world.offered.values()
    world.leg("two", "approved", delegation("y"), human_questions=ASKS)
    give_back_all(world)
    assert world.state.jobs[continuation.job_id].state is JobState.QUEUED
    world.resume("answer", "this", job_id=f"{ROOT}.2")
    again = world.offered[continuation.job_id]
    assert again == continuation.model_copy(update={"offer": again.offer})


@pytest.mark.ruling("D4")
def test_a_block_has_back_what_waits_and_a_retry_offers_it_again() -> None:
    world = waiting("a", "b", begun=1)
    world.end(f"{ROOT}.1", "failed")
    give_back_all(world)
    assert (states(world), world.state.closed) == ({"a": "failed", "b": "skipped"}, True)
    world.retry(f"{ROOT}.1")
    assert sorted(world.offered) == [f"{ROOT}.1", f"{ROOT}.2"]


@pytest.mark.ruling("C4", "G1")
def test_a_bound_has_back_what_waits() -> None:
    bounds = Bounds(max_delegation_width=1)
    world = waiting("a", begun=1, agent="lead")
    assert world.state.finalize is None
    world = waiting("one", bounds=bounds, begun=1, agent="lead")
    world.leg("one", "approved", delegation("x"), delegation("y"))
    assert world.state.finalize is not None
    assert [run.continuation for run in world.offered.values()] == [Continuation.FINALIZE]


@pytest.mark.ruling("F9")
def test_the_finalize_is_never_taken_back() -> None:
    world = waiting("a")
    world.kill()
    give_back_all(world)
    world.kill()
    assert world.asked_back == set()


def test_an_outcome_tells_of_a_begin_that_nobody_reported() -> None:
    world = waiting("a", "b")
    world.begins(f"{ROOT}.1", reported=False)
    assert states(world)["a"] == "queued"
    world.end(f"{ROOT}.1", begun_at=world.now - 1)
    kinds = [event.kind for event in world.events if event.job_id == f"{ROOT}.1"]
    assert kinds == ["job_queued", "job_begun", "job_ended"]
    assert world.state.jobs[f"{ROOT}.1"].started_at is not None


def test_a_begin_of_an_older_offer_is_old_news() -> None:
    world = waiting("a", "b", begun=1)
    world.end(f"{ROOT}.1", human_questions=ASKS)
    old = world.offered[f"{ROOT}.2"]
    give_back_all(world)
    world.resume("answer", "this")
    assert world.feed(JobBegun(now=world.now, job_id=old.job_id, offer=old.offer, at=world.now)) == []
    assert states(world)["b"] == "queued"


@pytest.mark.ruling("B3")
def test_what_a_running_job_waits_for_stands_in_its_row() -> None:
    world = waiting("a", begun=1)
    held = JobHeldUp(now=world.now, job_id=f"{ROOT}.1", attempt=1, reason="waits for a limit", next="kill it")
    world.feed(held)
    assert (world.jobs[f"{ROOT}.1"].reason, world.jobs[f"{ROOT}.1"].next) == ("waits for a limit", "kill it")
    assert world.feed(held.model_copy(update={"attempt": 2})) == []


@pytest.mark.ruling("B3", "Q4")
def test_what_an_offered_job_without_a_host_waits_for_is_in_its_row() -> None:
    world = waiting("a", begun=0)
    job, offer = f"{ROOT}.1", world.state.offers[f"{ROOT}.1"]
    held = JobHeldUp(now=world.now, job_id=job, attempt=1, reason="no host has gpu", next="look", offer=offer.number)
    world.feed(held)
    assert (world.jobs[job].state, world.jobs[job].reason) == (JobState.QUEUED, "no host has gpu")
    assert world.feed(held.model_copy(update={"offer": offer.number + 1})) == []
    assert world.feed(held.model_copy(update={"offer": 0, "reason": "x"})) == []
    world.begins(job)
    assert world.feed(held) == [], "it has begun since then"


@pytest.mark.ruling("B7")
def test_the_log_of_a_tree_reads_as_its_story() -> None:
    world = waiting("a", begun=1)
    world.end(f"{ROOT}.1", "implemented")
    [continuation] = world.offered
    world.begins(continuation)
    world.end(continuation)
    assert [event.kind for event in world.events] == [
        "tree_started",
        "job_queued",
        "job_begun",
        "job_ended",
        "job_queued",
        "job_begun",
        "job_ended",
        "batch_settled",
        "continuation_enqueued",
        "job_begun",
        "job_ended",
        "tree_ended",
    ]
    settled = next(event for event in world.events if event.kind == "batch_settled")
    assert (settled.data["verdict"], settled.data["legs"]) == ("proceed", ["a: succeeded"])
    [ended] = [event.message for event in world.events if (event.kind, event.job_id) == ("job_ended", f"{ROOT}.1")]
    assert ended == "part a (coder implement) succeeded, changes made"
