"""What a worker that died here held is offered again as the next one starts, not only when the server misses it.

The server knows of each activity which process took it. Those that a dead process of this host took are failed on its
behalf, and so offered again at once; a run is found again by its claim, so that nothing runs twice. And the steps of
workflows that are still to come are no longer kept for the dead process first.

Not found here: a workflow's task that the dead process was in the middle of. `calls.TASK_TIMEOUT` bounds that.
"""

import asyncio
import logging
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import Client
from temporalio.client import WorkflowExecution as Execution
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.host import worker_identity
from activities.temporal import RPC_TIMEOUT

log = logging.getLogger(__name__)

LOOK_SECONDS = 3.0
"""No start waits longer for this: what is left then is taken over while the worker polls already."""

TOGETHER = 16
MOST = 2000
"""So many workflows are looked at, at most."""

AT_ONCE = timedelta(milliseconds=1)
LOST = "WorkerLost"
"""The error type of an activity whose worker died."""

_RUNNING = "ExecutionStatus = 'Running' AND TaskQueue = '{}' AND (SvcState IS NULL OR SvcState = 'running')"
"""Neither pauses nor blocked trees: they have nothing that runs, and there may be very many."""


async def begun(client: Client, host: str, task_queue: str, kind: str = "") -> "asyncio.Task[int]":
    """Begin to take over; done as a rule before the caller begins to poll, else it goes on meanwhile."""
    taking = asyncio.create_task(take_over(client, host, task_queue, kind))
    await asyncio.wait({taking}, timeout=LOOK_SECONDS)
    return taking


async def take_over(client: Client, host: str, task_queue: str, kind: str = "") -> int:
    """Have offered again what dead processes of this host held; how many activities.

    With a kind of workflow, those alone are looked at.
    """
    query = _RUNNING.format(task_queue) + (f" AND WorkflowType = '{kind}'" if kind else "")
    given = _TakeOver(client, host)
    try:
        await given.look(query)
    except (RPCError, RuntimeError) as error:
        log.warning("what the last worker held is waited for: %s", error)
    if given.back:
        log.info("took over %d activities of a worker that died", given.back)
    return given.back


class _TakeOver:
    def __init__(self, client: Client, host: str) -> None:
        self._client, self._host = client, host
        self._few = asyncio.Semaphore(TOGETHER)
        self.back = 0

    async def look(self, query: str) -> None:
        found = self._client.list_workflows(query, limit=MOST, rpc_timeout=RPC_TIMEOUT)
        await asyncio.gather(*[self._of(each) async for each in found])

    async def _of(self, found: Execution) -> None:
        async with self._few:
            try:
                handle = self._client.get_workflow_handle(found.id, run_id=found.run_id)
                described = await handle.describe(rpc_timeout=RPC_TIMEOUT)
                for pending in described.raw_description.pending_activities:
                    if self._is_left(pending):
                        await self._give_back(found, pending)
                await self._free(found)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # it ended meanwhile
                    log.warning("%s is left to the server: %s", found.id, error)

    async def _free(self, found: Execution) -> None:
        """Its next step goes to whoever polls, which costs a worker that lives one replay of its history."""
        execution = WorkflowExecution(workflow_id=found.id, run_id=found.run_id)
        request = ResetStickyTaskQueueRequest(namespace=self._client.namespace, execution=execution)
        await self._client.workflow_service.reset_sticky_task_queue(request, timeout=RPC_TIMEOUT)

    def _is_left(self, pending: PendingActivityInfo) -> bool:
        """One that is to stop is left to the server: it would not be offered again."""
        started = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        return started and worker_identity.is_dead(pending.last_worker_identity, self._host)

    async def _give_back(self, found: Execution, pending: PendingActivityInfo) -> None:
        handle = self._client.get_async_activity_handle(
            workflow_id=found.id, run_id=found.run_id, activity_id=pending.activity_id
        )
        why = f"its worker died: {pending.last_worker_identity}"
        await handle.fail(ApplicationError(why, type=LOST, next_retry_delay=AT_ONCE), rpc_timeout=RPC_TIMEOUT)
        self.back += 1
