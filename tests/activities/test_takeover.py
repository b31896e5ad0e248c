"""The worker after one that died takes over the activities of its host, and nothing else."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from uuid import uuid4

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecution, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities import takeover
from activities.runs.os_processes import identity
from activities.takeover import LOST, take_over
from tests.waiting import soon, until

pytestmark = pytest.mark.ruling("engine:runs")

HOST = "web-1"
STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
AN_HOUR = timedelta(hours=1)
"""The server's timeout of a dead worker: a test that waits for it fails."""


@workflow.defn
class Holding:
    @workflow.run
    async def run(self) -> int:
        return await workflow.execute_activity(
            hold,
            start_to_close_timeout=AN_HOUR,
            heartbeat_timeout=AN_HOUR,
            task_queue=workflow.info().task_queue,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


@activity.defn
async def hold() -> int:
    """Never end in the first attempt, not even on order; return the number of a later one."""
    attempt = activity.info().attempt
    if attempt == 1:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await activity.wait_for_worker_shutdown()
    return attempt


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(["sleep", "600"])
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def name_of(process: subprocess.Popen[bytes], host: str = HOST) -> str:
    """Return the name of a worker in that process."""
    return f"{process.pid}@{host} since {identity(process.pid)}"


def dead(process: subprocess.Popen[bytes], host: str = HOST) -> str:
    name = name_of(process, host)
    process.kill()
    process.wait()
    return name


@asynccontextmanager
async def held_by(client: Client, name: str) -> AsyncIterator[WorkflowHandle[Holding, int]]:
    """Start a workflow whose activity a worker of that name holds."""
    queue = f"q-{uuid4().hex}"
    workers = Worker(
        client,
        task_queue=queue,
        identity=name,
        workflows=[Holding],
        workflow_runner=UnsandboxedWorkflowRunner(),
        activities=[hold],
    )
    async with workers:
        handle = await client.start_workflow(Holding.run, id=queue, task_queue=queue)
        try:
            await until(lambda: started(handle))
            yield handle
        finally:
            if (await handle.describe()).close_time is None:
                await handle.terminate()


async def pending(handle: WorkflowHandle[Holding, int]) -> PendingActivityInfo | None:
    return next(iter((await handle.describe()).raw_description.pending_activities), None)


async def started(handle: WorkflowHandle[Holding, int], state: int = STARTED) -> bool:
    activity = await pending(handle)
    return activity is not None and activity.state == state


async def attempts(handle: WorkflowHandle[Holding, int]) -> int:
    activity = await pending(handle)
    return activity.attempt if activity else 0


async def test_what_a_dead_process_held_is_offered_again_at_once(
    client: Client, process: subprocess.Popen[bytes]
) -> None:
    async with held_by(client, dead(process)) as handle:
        assert await take_over(client, HOST, handle.id) == 1
        assert await soon(handle.result()) == 2


async def test_what_a_dead_process_was_to_stop_fails_at_once(client: Client, process: subprocess.Popen[bytes]) -> None:
    """The server offers a cancelled activity to nobody again: its workflow has to learn that."""
    async with held_by(client, dead(process)) as handle:
        await handle.cancel()
        await until(lambda: started(handle, PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED))
        assert await take_over(client, HOST, handle.id) == 1
        with pytest.raises(WorkflowFailureError) as failed:
            await soon(handle.result())
    assert isinstance(failed.value.cause, ActivityError)
    assert isinstance(failed.value.cause.cause, ApplicationError)
    assert failed.value.cause.cause.type == LOST


async def test_what_another_host_holds_is_left_alone(client: Client, process: subprocess.Popen[bytes]) -> None:
    async with held_by(client, dead(process, "web-2")) as handle:
        assert await take_over(client, HOST, handle.id) == 0
        assert await attempts(handle) == 1


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGSTOP])
async def test_what_a_process_holds_that_lives_is_left_alone(
    client: Client, process: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    process.send_signal(number)
    async with held_by(client, name_of(process)) as handle:
        assert await take_over(client, HOST, handle.id) == 0
        assert await attempts(handle) == 1


async def test_other_kinds_of_workflows_are_left_alone_where_one_is_named(
    client: Client, process: subprocess.Popen[bytes]
) -> None:
    async with held_by(client, dead(process)) as handle:
        assert await take_over(client, HOST, handle.id, "GithubDesk") == 0
        assert await take_over(client, HOST, handle.id, "Holding") == 1


async def test_a_start_does_not_wait_for_long_and_the_rest_is_taken_over_meanwhile(
    client: Client, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = asyncio.Event()
    free = takeover._TakeOver._free

    async def slow(of: takeover._TakeOver, execution: WorkflowExecution) -> None:
        await let_go.wait()
        await free(of, execution)

    monkeypatch.setattr(takeover, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(takeover._TakeOver, "_free", slow)
    async with held_by(client, dead(process)) as handle:
        taking = await soon(takeover.begin(client, HOST, handle.id))
        assert not taking.done()
        let_go.set()
        assert await soon(taking) == 1


def test_a_process_is_known_by_its_pid_and_when_it_began(process: subprocess.Popen[bytes]) -> None:
    name = name_of(process)
    began = name.rpartition(" ")[2]
    assert not takeover.is_dead(takeover.worker_identity(HOST), HOST)
    assert not takeover.is_dead(name, HOST)
    assert takeover.is_dead(name.replace(began, "another-boot.1"), HOST), "its number was given again"
    process.kill()
    process.wait()
    assert takeover.is_dead(name, HOST)
    assert not takeover.is_dead(name, "web-2")


@pytest.mark.parametrize("name", ["", "1@web-1", "x@web-1 since 1", "@web-1 since 1", "1 since 1"])
def test_of_a_name_that_says_less_nothing_is_known(name: str) -> None:
    assert not takeover.is_dead(name, HOST)
