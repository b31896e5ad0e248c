"""Take over the activities of a dead worker of this host when the next one starts, before the server times them out.

The server knows the process of each activity. Activities of this host's dead processes are failed on their behalf, so
the server offers them again at once. A run is found again by its claim, so nothing runs twice. Sticky task queues are
reset, so that the server doesn't hold later steps of workflows for the dead process.

Orders come first: workflows read a kill that was accepted while no worker lived before their activities are offered
again. So a worker polls for steps of trees during the takeover, and for jobs after it.

Not covered: a workflow task that the dead process had begun. `calls.TASK_TIMEOUT` limits that.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse, ResetStickyTaskQueueRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.runs.os_processes import identity
from activities.temporal import RPC_TIMEOUT
from workflows.temporal.writes import ORDER

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Longest delay of a worker's start; the rest is taken over while the worker polls. Within this time the server gives
out a step again that died with its worker (`calls.TASK_TIMEOUT`), and a step in the dead worker's sticky queue sooner.
"""

AGAIN_SECONDS = 0.1
"""Interval of checks whether a workflow has read its orders."""

TOGETHER = 16
MOST = 2000
"""The most workflows to look at."""

AT_ONCE = timedelta(milliseconds=1)
LOST = "WorkerLost"
"""The error type of an activity whose worker died."""

_RUNNING = "ExecutionStatus = 'Running' AND TaskQueue = '{}' AND (SvcState IS NULL OR SvcState = 'running')"
"""Selects running workflows, except trees that are paused or blocked: those have no running activities, and there may
be very many.
"""

_HELD = (
    PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
    PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
)


async def begin(client: Client, host: str, task_queue: str, kind: str = "") -> "asyncio.Task[int]":
    """Start to take over in the background, and wait a short time, in which it usually finishes."""
    taking = asyncio.create_task(take_over(client, host, task_queue, kind))
    await asyncio.wait({taking}, timeout=LOOK_SECONDS)
    return taking


async def take_over(client: Client, host: str, task_queue: str, kind: str = "") -> int:
    """Have activities of dead processes of this host offered again. Return how many.

    With a `kind`, only workflows of that kind are looked at, and no worker has to poll for their steps meanwhile.
    """
    query = _RUNNING.format(task_queue) + (f" AND WorkflowType = '{kind}'" if kind else "")
    given = _TakeOver(client, host, orders_first=not kind)
    try:
        await given.look(query)
    except (RPCError, RuntimeError) as error:
        log.warning("waiting for the activities of the last worker: %s", error)
    if given.back:
        log.info("took over %d activities of a worker that died", given.back)
    return given.back


class _TakeOver:
    def __init__(self, client: Client, host: str, *, orders_first: bool) -> None:
        self._client, self._host, self._orders_first = client, host, orders_first
        self._few = asyncio.Semaphore(TOGETHER)
        self.back = 0

    async def look(self, query: str) -> None:
        """Reset all sticky queues, wait until each workflow has read its orders, then release activities; parents
        first.
        """
        listing = self._client.list_workflows(query, limit=MOST, rpc_timeout=RPC_TIMEOUT)
        executions = [execution async for execution in listing]
        await asyncio.gather(*[self._each(each, self._free) for each in executions])
        if self._orders_first:
            by_id = {each.id: each for each in executions}
            deadline = asyncio.get_running_loop().time() + LOOK_SECONDS
            for generation in _generations(by_id):
                await asyncio.gather(*[self._each(each, partial(self._orders_read, deadline)) for each in generation])
        await asyncio.gather(*[self._each(each, self._give_all_back) for each in executions])

    async def _each(self, execution: WorkflowExecution, do: Callable[[WorkflowExecution], Awaitable[None]]) -> None:
        async with self._few:
            try:
                await do(execution)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended by now
                    log.warning("%s is left to the server: %s", execution.id, error)

    async def _orders_read(self, deadline: float, execution: WorkflowExecution) -> None:
        """Wait until a workflow has no pending step, and no order that waits for its turn (`Loop.order`)."""
        while asyncio.get_running_loop().time() < deadline:
            if not _reads(await self._describe(execution)):
                return
            await asyncio.sleep(AGAIN_SECONDS)

    async def _give_all_back(self, execution: WorkflowExecution) -> None:
        for pending in (await self._describe(execution)).pending_activities:
            if self._is_left(pending):
                await self._give_back(execution, pending)

    async def _describe(self, execution: WorkflowExecution) -> DescribeWorkflowExecutionResponse:
        handle = self._client.get_workflow_handle(execution.id, run_id=execution.run_id)
        return (await handle.describe(rpc_timeout=RPC_TIMEOUT)).raw_description

    async def _free(self, execution: WorkflowExecution) -> None:
        """Reset the sticky queue: the next step then goes to any poller. A living worker loses its cached workflow, and
        has to replay the history once.
        """
        request = ResetStickyTaskQueueRequest(namespace=self._client.namespace)
        request.execution.workflow_id, request.execution.run_id = execution.id, execution.run_id
        await self._client.workflow_service.reset_sticky_task_queue(request, timeout=RPC_TIMEOUT)

    def _is_left(self, pending: PendingActivityInfo) -> bool:
        """Return whether a dead process holds the activity. A cancelled one is not offered again: it fails, and its
        workflow has the attempt stopped by another call.
        """
        return pending.state in _HELD and is_dead(pending.last_worker_identity, self._host)

    async def _give_back(self, execution: WorkflowExecution, pending: PendingActivityInfo) -> None:
        handle = self._client.get_async_activity_handle(
            workflow_id=execution.id, run_id=execution.run_id, activity_id=pending.activity_id
        )
        why = f"its worker died: {pending.last_worker_identity}"
        await handle.fail(ApplicationError(why, type=LOST, next_retry_delay=AT_ONCE), rpc_timeout=RPC_TIMEOUT)
        self.back += 1


def _generations(executions: Mapping[str, WorkflowExecution]) -> list[list[WorkflowExecution]]:
    """Group workflows by their number of ancestors among them: orders go down from parents to children."""

    def depth(execution: WorkflowExecution) -> int:
        parent = executions.get(execution.parent_id or "")
        return 1 + depth(parent) if parent is not None else 0

    by_depth: dict[int, list[WorkflowExecution]] = {}
    for execution in executions.values():
        by_depth.setdefault(depth(execution), []).append(execution)
    return [by_depth[number] for number in sorted(by_depth)]


def _reads(described: DescribeWorkflowExecutionResponse) -> bool:
    waits = (each.activity_type.name == ORDER for each in described.pending_activities)
    return described.HasField("pending_workflow_task") or any(waits)


_SINCE = " since "


def worker_identity(host: str) -> str:
    """Name this process as a worker of a host: its pid, and its start time, since pids are reused."""
    return f"{os.getpid()}@{host}{_SINCE}{identity(os.getpid())}"


def is_dead(name: str, host: str) -> bool:
    """Return whether a worker's name is of a dead process of this host; False for a name without a start time."""
    who, _, began = name.partition(_SINCE)
    pid, _, where = who.partition("@")
    return where == host and pid.isdecimal() and bool(began) and identity(int(pid)) != began
