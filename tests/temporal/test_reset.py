"""Resets in Temporal while children run: the new run takes up what runs on, and starts nothing twice."""

import pytest
from temporalio.client import Client

from tests.temporal.host import Host, ended, name_of, says, script, serving, start
from tests.temporal.orders import kill, latest, reset, runs_of, steps, taken_up
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.model.event_kinds import EventKind
from workflows.model.rows import JobRecord, Records
from workflows.model.states import JobState, TaskState
from workflows.policy import backoff
from workflows.temporal import children

pytestmark = pytest.mark.ruling("engine:outside.reset", "G2")

PAIR = (delegation("a"), delegation("b", deps=("a",)))


async def test_a_leg_that_runs_while_its_tree_is_reset_is_taken_up(client: Client, queue: str) -> None:
    host = Host(script({"root": PAIR}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        leg = host.run("a").job_id
        for number in range(2):
            await reset(client, tree, (await steps(client, tree))[0])
            await taken_up(client, leg, times=number + 1)
        host.release("a")
        closed = await soon(ended(latest(client, tree)))
        assert await runs_of(client, tree) == 3
    assert closed.task_state is TaskState.DONE
    assert [name for name in host.names if name != "root"] == ["a", "b", "normal"], "no leg ran twice"
    assert ends_of(host, leg) == 1


def ends_of(host: Host, job_id: str) -> int:
    """Return how often the end of a job was recorded."""
    events = {each.event_id: each for records in host.written for each in records.events}
    return len([each for each in events.values() if (each.kind, each.job_id) == (EventKind.JOB_ENDED, job_id)])


def last_row(host: Host, job_id: str) -> JobRecord:
    return [job for records in host.written for job in records.jobs if job.job_id == job_id][-1]


@pytest.mark.parametrize("outcome", ["approved", "failed"])
async def test_a_leg_that_was_taken_up_ends_over_a_restart_of_the_worker(
    client: Client, queue: str, outcome: str
) -> None:
    host = Host(script({"root": PAIR}), held={"a"})
    host.on_cancel = lambda _: says(host.run("a"), outcome)  # its worker's end is the leg's
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        leg = host.run("a").job_id
        await reset(client, tree, (await steps(client, tree))[0])
        await taken_up(client, leg)
    async with serving(client, queue, host):
        closed = await soon(ended(latest(client, tree)))
    assert closed.task_state is (TaskState.DONE if outcome == "approved" else TaskState.BLOCKED)
    assert (host.names.count("a"), ends_of(host, leg)) == (1, 1)


@pytest.mark.parametrize("step", [0, -1])
async def test_a_leg_that_ran_on_through_a_reset_is_stopped_with_its_tree(
    client: Client, queue: str, step: int
) -> None:
    """Reset to before the leg was begun, and after: then the server itself tells the new run how the leg ends."""
    host = Host(script({"root": PAIR}), held={"a"})
    host.on_cancel = lambda outcome: outcome.model_copy(update={"summary": "as far as it came"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        leg = host.run("a").job_id
        await reset(client, tree, (await steps(client, tree))[step])
        if step == 0:
            await taken_up(client, leg)
        await kill(latest(client, tree), immediate=True)
        closed = await soon(ended(latest(client, tree)))
    assert (closed.task_state, host.cancelled) == (TaskState.CANCELLED, ["a"])
    row = last_row(host, leg)
    assert row.state is JobState.CANCELLED
    assert row.reason == "stopped by order: killed by ann", "what the leg itself left"


async def test_a_leg_in_its_second_attempt_is_waited_for_and_the_first_is_looked_up(
    client: Client, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real host has what either attempt came to; this one runs both again."""
    monkeypatch.setattr(backoff, "FIRST_RETRY_SECONDS", 0.2)
    lines = script({"root": (delegation("a", retry=1),), "a": ["failed", "approved", "failed", "approved"]})
    host = Host(lines)

    async def hold_the_second(records: Records) -> None:
        if len(host.runs) == 2 and any(job.attempt == 2 for job in records.jobs):
            host.held.add("a")

    async with serving(client, queue, host):
        host.before_write = hold_the_second
        tree = await start(client, queue)
        await host.until(lambda: [run.attempt for run in host.runs if name_of(run) == "a"] == [1, 2])
        leg = host.run("a").job_id
        await reset(client, tree, (await steps(client, tree))[0])
        await taken_up(client, leg)
        host.release("a")
        closed = await soon(ended(latest(client, tree)))
    assert closed.task_state is TaskState.DONE
    assert [run.attempt for run in host.runs if name_of(run) == "a"] == [1, 2, 1, 2]


@pytest.mark.parametrize("killed", [False, True])
async def test_a_leg_that_is_terminated_while_it_is_waited_for_is_lost(
    client: Client, queue: str, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """It tells nobody that it has ended, so it is asked again; a cancellation finds out too."""
    if not killed:
        monkeypatch.setattr(children, "FIRST_WAIT", 0.5)
    host = Host(script({"root": PAIR}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        leg = host.run("a").job_id
        await reset(client, tree, (await steps(client, tree))[0])
        await taken_up(client, leg)
        await client.get_workflow_handle(leg).terminate("by hand, for a test")
        if killed:
            await kill(latest(client, tree), immediate=True)
        closed = await soon(ended(latest(client, tree)))
    assert closed.task_state is (TaskState.CANCELLED if killed else TaskState.BLOCKED)
    assert host.names.count("a") == 1
    assert "its workflow ended without an outcome: " in last_row(host, leg).reason
