"""A tree whose workflow is lost at any moment continues as if it had only waited."""

import pytest

from tests.tree.simulator import World, delegation, outcome, play, tree_input
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.tree.events import JobEnded
from workflows.tree.reopen import refuse_taking_up

LEGS = (
    delegation("a", retry=1),
    delegation("b", deps=("a",)),
    delegation("n", "lead"),
    delegation("v", deps=("b",), synthesis_rule="verify"),
)


def answer(run: JobRun) -> JobOutcome:
    """Fail once, nest once, fail a verification once; all progress differs."""
    fields = {"progress": f"{run.job_id} {run.attempt}"}
    if run.parent_job_id is None:
        return outcome(run, "approved", *LEGS, **fields)
    if run.continuation == "replan":
        return outcome(run, "approved", delegation("w"), **fields)
    if run.delegation_id == "n":
        return outcome(run, "approved", delegation("deep"), **fields)
    failing = {"a": "failed", "v": "changes_requested"}
    first = run.delegation_id in failing and run.attempt == 1
    return outcome(run, failing[run.delegation_id or ""] if first else "approved", **fields)


def steps(world: World, count: int) -> World:
    """Play so many ends of runs and timers, or until the tree closes."""
    while not world.state.closed and count:
        count -= 1
        if world.flying:
            world.feed(JobEnded(now=world.now + 1, outcome=answer(next(iter(world.flying.values())))))
        else:
            world.fire()
    return world


@pytest.mark.ruling("engine:outside", "G2")
@pytest.mark.parametrize("moment", range(12))
@pytest.mark.parametrize("killed", [False, True])
def test_at_every_moment(moment: int, killed: bool) -> None:
    world = steps(World(tree_input()).begin(), moment)
    if killed:
        world.kill()
    if world.close:
        return
    running = world.state.running
    world.taken_up()
    assert [
        job for job in running if job not in world.state.running and world.jobs[job].state is JobState.RUNNING
    ] == []
    play(world, answer)
    assert world.task_state() is (TaskState.CANCELLED if killed else TaskState.DONE)
    assert world.kinds().count("tree_taken_up") == 1
    assert all(job.state not in {JobState.RUNNING, JobState.QUEUED} for job in world.state.jobs.values())
    if not killed:
        assert all(world.state.jobs[job].attempt > 1 for job in running), "what was interrupted ran again"


@pytest.mark.ruling("engine:outside", "G2")
def test_in_a_blocked_task_the_siblings_are_over() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("bad"), delegation("good"))
    world.leg("bad", "failed")
    assert world.task_state() is TaskState.BLOCKED
    world.taken_up()
    assert world.state.closed
    assert world.named("good").state is JobState.CANCELLED


@pytest.mark.ruling("engine:outside", "F8")
def test_a_pause_has_the_time_it_had_left() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", human_questions=({"id": "q", "prompt": "which?"},))
    left = world.open()[0].expires_at - world.now
    world.taken_up(gap=500_000.0)
    assert world.task_state() is TaskState.AWAITING_HUMAN
    current = world.state.open_round(world.state.root_id)
    assert current is not None
    assert (current.expires_at - world.now, current.expires_at - current.armed_at) == (left, left)
    world.resume("answer", "q: this one")
    assert world.state.running


@pytest.mark.ruling("engine:outside", "C3")
def test_what_the_budget_has_no_room_for_is_refused() -> None:
    world = World(tree_input(Bounds(max_delegation_total_jobs=2))).begin()
    world.coordinator("approved", delegation("a"), delegation("b"))
    assert "job budget of 2" in (refuse_taking_up(world.state) or "")


@pytest.mark.ruling("engine:outside", "C4")
def test_a_finalize_that_is_run_again_counts_nowhere() -> None:
    world = World(tree_input(Bounds(max_delegation_total_jobs=1))).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    assert (world.last.continuation, world.state.spent_jobs) == ("finalize", 1)
    world.taken_up()
    assert (world.last.continuation, world.last.attempt, world.state.spent_jobs) == ("finalize", 2, 1)
