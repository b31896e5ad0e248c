"""Retries by an operator: in an open tree by update, in a closed one by a start from its kept state (D4)."""

import asyncio
import time
from datetime import timedelta

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import TimeSkipper

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, ended, kinds, name_of, script, serving, start
from tests.temporal.orders import blocked, reopened
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.model.orders import Retry
from workflows.model.rows import Records
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.temporal.delegation_tree import DelegationTree

TASK_TIMEOUT = timedelta(seconds=1)
"""A tree whose rows take longer to write loses its task, and then sees messages that arrived meanwhile."""

BAD_AND_GOOD = (delegation("bad"), delegation("good"), delegation("after", deps=("bad",)))


async def retry(tree: Handle, job_id: str, update_id: str | None = None) -> None:
    await tree.execute_update(DelegationTree.retry, Retry(actor="ann", job_id=job_id), id=update_id)


async def refusal(tree: Handle, job_id: str) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await retry(tree, job_id)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "Refused"
    return caught.value.cause.message


async def is_accepted(tree: Handle) -> bool:
    """Return whether the tree's history has an order."""
    events = (await tree.fetch_history()).events
    return any(event.HasField("workflow_execution_update_accepted_event_attributes") for event in events)


async def tasks_of(tree: Handle) -> int:
    """Count the workflow tasks that a worker has begun."""
    events = (await tree.fetch_history()).events
    return sum(event.HasField("workflow_task_started_event_attributes") for event in events)


async def is_admitted(client: Client, tree: Handle, update_id: str) -> bool:
    """Return whether the server knows of an order, which its memory alone may have."""
    execution = WorkflowExecution(workflow_id=tree.id)
    asked = PollWorkflowExecutionUpdateRequest(
        namespace=client.namespace, update_ref=UpdateRef(workflow_execution=execution, update_id=update_id)
    )
    try:
        await client.workflow_service.poll_workflow_execution_update(asked)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def test_a_failed_leg_runs_again_while_its_siblings_run(client: Client, queue: str) -> None:
    host = Host(script({"root": BAD_AND_GOOD, "bad": ["failed", "approved"]}), held={"good"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until(lambda: Books(host.written).task_state is TaskState.BLOCKED)
        await retry(tree, host.run("bad").job_id)
        await host.until(lambda: host.ended.count("bad") == 2)
        host.release("good")
        closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert closed.task_state is TaskState.DONE
    assert [run.attempt for run in host.runs if name_of(run) == "bad"] == [1, 2]
    assert books.named("after").state is JobState.SUCCEEDED
    assert books.kinds().count("retry_requested") == 1


async def test_a_refused_retry_says_why_and_leaves_no_trace(client: Client, queue: str) -> None:
    host = Host(script({"root": BAD_AND_GOOD, "bad": "failed"}), held={"good"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("good")
        await host.until(lambda: Books(host.written).task_state is TaskState.BLOCKED)
        assert "there is no job job-x" in await refusal(tree, "job-x")
        assert "part good is running" in await refusal(tree, host.run("good").job_id)
        assert "its batch is over" in await refusal(tree, host.run("root").job_id)
        assert not await is_accepted(tree)
        host.release("good")
        await ended(tree)
    assert "retry_refused" not in Books(host.written).kinds()


async def test_a_retry_before_the_first_task_is_refused(client: Client, queue: str) -> None:
    host = Host(script({}), held={"root"})
    tree = await start(client, queue)
    early = asyncio.create_task(refusal(tree, tree.id))
    await asyncio.sleep(0.1)
    async with serving(client, queue, host):
        assert "is" in await soon(early)
        host.release("root")
        assert (await ended(tree)).task_state is TaskState.DONE


async def test_an_order_that_comes_while_the_tree_closes_opens_it_again(client: Client, queue: str) -> None:
    """Writing the row with `blocked` lasts until the order is accepted: the operator sees the state elsewhere."""
    host, blocked = Host(script({"root": (delegation("bad"),), "bad": ["failed", "approved"]})), asyncio.Event()

    async def slow(records: Records) -> None:
        if records.task and records.task.state is TaskState.BLOCKED and not blocked.is_set():
            blocked.set()
            await until(lambda: is_accepted(tree))

    host.before_write = slow
    async with serving(client, queue, host):
        tree = await start(client, queue, task_timeout=TASK_TIMEOUT)
        await blocked.wait()
        await retry(tree, host.run("bad").job_id)
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert (host.names, closed.task_state) == (["root", "bad", "bad", "normal"], TaskState.DONE)


@pytest.mark.ruling("F4")
async def test_the_rows_of_an_order_are_written_after_it_is_kept(client: Client, queue: str) -> None:
    """It comes in the workflow task in which the blocked tree closes. If that task were lost after its rows were
    written, they would tell of an order that nobody has.
    """
    host = Host(script({"root": (delegation("bad"),), "bad": ["failed", "approved"]}))
    orders, kept = list[asyncio.Task[None]](), list[bool]()

    async def before_keep() -> None:
        if not orders:
            tasks = await tasks_of(tree)
            orders.append(asyncio.create_task(retry(tree, host.run("bad").job_id, update_id="ours")))
            await until(lambda: is_admitted(client, tree, "ours"))
            await until(lambda: is_later(tasks))

    async def is_later(tasks: int) -> bool:
        return await tasks_of(tree) > tasks

    async def before_write(records: Records) -> None:
        if "retry_requested" in kinds([records]):
            kept.append(await is_accepted(tree))

    host.before_keep, host.before_write = before_keep, before_write
    async with serving(client, queue, host):
        tree = await start(client, queue, task_timeout=TASK_TIMEOUT)
        closed = await soon(ended(tree))
        await soon(orders[0])
    Books(host.written).check(host.runs, Bounds())
    assert (kept, closed.task_state) == ([True], TaskState.DONE)


async def test_a_closed_blocked_tree_goes_on_where_it_stood(client: Client, queue: str) -> None:
    host = Host(script({"root": BAD_AND_GOOD, "bad": ["failed", "failed", "approved"]}))
    async with serving(client, queue, host):
        first = await blocked(client, queue, host)
        bad = host.run("bad").job_id
        again = await start(client, queue, reopened(queue, host, bad))
        assert (await ended(again)).task_state is TaskState.BLOCKED
        third = await start(client, queue, reopened(queue, host, bad))
        closed = await ended(third)
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert first.id == again.id == third.id
    assert closed.task_state is TaskState.DONE
    assert [run.attempt for run in host.runs if name_of(run) == "bad"] == [1, 2, 3]
    assert host.names.count("good") == 1, "what succeeded is not repeated"
    assert host.names[-2:] == ["after", "normal"]
    assert closed.jobs == 5


async def test_a_failed_root_runs_again(client: Client, queue: str) -> None:
    host = Host(script({"root": [None, "approved"]}))
    async with serving(client, queue, host):
        tree = await blocked(client, queue, host)
        closed = await ended(await start(client, queue, reopened(queue, host, tree.id)))
    Books(host.written).check(host.runs, Bounds())
    assert ([run.attempt for run in host.runs], closed.task_state) == ([1, 2], TaskState.DONE)


async def test_reopening_with_a_senseless_order_fails_and_changes_no_job(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("bad"),), "bad": "failed"}))
    async with serving(client, queue, host):
        await blocked(client, queue, host)
        rows = Books(host.written).jobs
        tree = await start(client, queue, reopened(queue, host, "job-x"))
        with pytest.raises(WorkflowFailureError) as caught:
            await ended(tree)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "Refused"
    assert Books(host.written).jobs == rows
    assert Books(host.written).kinds()[-1] == "retry_refused"


@pytest.mark.ruling("C4")
async def test_the_days_a_tree_was_closed_are_not_its_wall_clock(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("bad"),), "bad": ["failed", "approved"]}))
    async with serving(client, queue, host):
        await blocked(client, queue, host)
        later = reopened(queue, host, host.run("bad").job_id)
        order = later.retry.model_copy(update={"now": time.time() + 86_400}) if later.retry else None
        skipping = TimeSkipper(client).client
        tree = await start(skipping, queue, later.model_copy(update={"retry": order}))
        closed = await ended(tree)
    assert closed.task_state is TaskState.DONE
    assert "delegation_walltime_exceeded" not in Books(host.written).kinds()
