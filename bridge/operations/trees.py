"""Trees as a whole: starting one, ending one, running a part of one again."""

import secrets
import time
from dataclasses import dataclass

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities import outside
from activities.cluster import not_taken
from activities.settings.model import Settings
from activities.store import jobs as stored_jobs
from activities.store import trees as stored
from activities.temporal import RPC_TIMEOUT, connect
from bridge.operations import branches, jobs
from bridge.operations.branches import BranchState, LegBranch
from bridge.operations.service import Service
from workflows import search
from workflows.delegation_tree import DelegationTree
from workflows.errors import RefusedError, UnreachableError
from workflows.messages import Kill, Retry, TreeStart
from workflows.tree import ids, lost
from workflows.tree.commands import CloseTree
from workflows.tree.events import RetryRequested, TreeTakenUp
from workflows.tree.jobs import JobState, TaskState
from workflows.tree.records import Records
from workflows.tree.reducer import new_tree, root_run
from workflows.tree.reopening import refuse_retry
from workflows.tree.state import TreeInput
from workflows.tree.taking_up import refuse_taking_up

SUMMARY_LIMIT = 200


@dataclass(frozen=True)
class Retried:
    """A job that runs again."""

    job_id: str
    reopened: bool
    """The tree was over; it has been opened again for this."""


@dataclass(frozen=True)
class Killed:
    """A tree that ends or has ended by somebody's order."""

    root_job_id: str
    over: bool
    """It was blocked and is over now; else it is being ended."""
    unmerged: tuple[LegBranch, ...] = ()
    """Branches that hold work nobody has merged."""


def new_root_id() -> str:
    """The id of a tree that starts now (ruling B1)."""
    return ids.root_id(time.time_ns() // 1_000_000, secrets.randbits(ids.RANDOM_BITS))


async def start(service: Service, tree: TreeInput, host: str) -> str:
    """Start a tree; either it exists in full, or nothing was recorded. Starting it again changes nothing."""
    client = await connect(service.home, service.settings)
    try:
        first = TreeStart(input=tree, host=host)
        await _start_workflow(client, service.settings, first, WorkflowIDReusePolicy.REJECT_DUPLICATE)
    except WorkflowAlreadyStartedError:
        pass
    except (RPCError, RuntimeError, OSError) as error:
        raise await not_taken(client, error, "the job") from None
    state = new_tree(tree)
    stored.begin(service.store, tree, host, Records(task=state.task, jobs=tuple(state.jobs.values())))
    return tree.root_job_id


async def kill(service: Service, job_id: str, *, actor: str, immediate: bool) -> Killed:
    """End the tree a job belongs to (ruling G2). The order waits for a worker if there is none.

    One that is blocked and closed is dismissed; one that is over takes no order.
    """
    root = jobs.get(service, job_id).root_job_id
    _refuse_over(service, root)
    client = await connect(service.home, service.settings)
    try:
        order = Kill(actor=actor, immediate=immediate)
        await client.get_workflow_handle(root).signal(DelegationTree.kill, order, rpc_timeout=RPC_TIMEOUT)
        return Killed(root, over=False)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise UnreachableError(f"Temporal did not take the order: {error}", "service daemon status") from None
    return await _end_closed(service, client, root, actor)


async def dismiss(service: Service, job_id: str, *, actor: str) -> Killed:
    """A blocked task is over: nobody is reminded of it, and no retry opens it again (ruling D4)."""
    root = jobs.get(service, job_id).root_job_id
    task = stored_jobs.task_of(service.store, root)
    if task is not None and task.state in lost.OPEN_TASKS:
        client = await connect(service.home, service.settings)
        if await _settled(service, client, root) is None:
            raise RefusedError(f"the tree {root} is not blocked: {task.state}", f"service job kill {root}")
        return await _end_closed(service, client, root, actor)
    return await kill(service, root, actor=actor, immediate=True)


async def _end_closed(service: Service, client: Client, root: str, actor: str) -> Killed:
    """No workflow takes the order: a blocked task is dismissed here, whether it closed or was ended from outside."""
    await _settled(service, client, root)
    _refuse_over(service, root)
    task = stored_jobs.task_of(service.store, root)
    if task is None or task.state is not TaskState.BLOCKED:
        raise RefusedError(f"the tree {root} is only just ending", f"service job tree {root}")
    stored_jobs.dismiss(service.store, task, actor)
    legs = branches.of_tree(service, root).legs
    return Killed(root, over=True, unmerged=tuple(leg for leg in legs if leg.state is BranchState.UNMERGED))


def _refuse_over(service: Service, root: str) -> None:
    """No order is promised that has nothing to act on."""
    task = stored_jobs.task_of(service.store, root)
    if task is not None and task.state in {TaskState.DONE, TaskState.CANCELLED}:
        over = f"there is nothing to end: the tree {root} is {task.state}: {task.reason}"
        raise RefusedError(over, f"service job tree {root}")


async def _settled(service: Service, client: Client, root: str) -> Records | None:
    """What housekeeping would find, found now."""
    try:
        return await outside.settle(client, service.store, service.settings.temporal.task_queue, root)
    except RPCError as error:
        raise UnreachableError(f"Temporal cannot say how {root} ended: {error}", "service daemon status") from None


async def retry(service: Service, job_id: str, *, actor: str) -> Retried:
    """Run a failed job again, opening its tree again where that has closed blocked (ruling D4)."""
    root = jobs.get(service, job_id).root_job_id
    client = await connect(service.home, service.settings)
    handle = client.get_workflow_handle_for(DelegationTree.run, root)
    try:
        return await _retry_open(handle, Retry(actor=actor, job_id=job_id))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise UnreachableError(f"Temporal did not take the order: {error}", "service daemon status") from None
    await _settled(service, client, root)
    if await _was_lost(service, root):
        return await _take_up(service, client, root, actor)
    return await _reopen(service, client, root, RetryRequested(now=time.time(), actor=actor, job_id=job_id))


async def _retry_open(handle: WorkflowHandle[DelegationTree, CloseTree], order: Retry) -> Retried:
    try:
        await handle.execute_update(DelegationTree.retry, order, rpc_timeout=RPC_TIMEOUT)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        why = cause.message if isinstance(cause, ApplicationError) else str(cause)
        raise RefusedError(why, f"service job tree {order.job_id}") from None
    except WorkflowUpdateRPCTimeoutOrCancelledError:
        raise UnreachableError(
            "no worker took the order in time; it may still be carried out", f"service job show {order.job_id}"
        ) from None
    return Retried(order.job_id, reopened=False)


async def _reopen(service: Service, client: Client, root: str, order: RetryRequested) -> Retried:
    tree, task = stored.get(service.store, root), stored_jobs.task_of(service.store, root)
    if task is None or task.state is not TaskState.BLOCKED or tree is None or tree.state is None:
        state = f"{task.state}: {task.reason}" if task else "over"
        what_next = task.next if task and task.next else f"service job tree {root}"
        raise RefusedError(f"nothing of the tree {root} waits to be run again; it is {state}", what_next)
    if why_not := refuse_retry(tree.state, order.job_id):
        raise RefusedError(why_not, f"service job tree {root}")
    again = TreeStart(input=tree.start, host=tree.host, state=tree.state, retry=order)
    try:
        await _start_workflow(client, service.settings, again)
    except WorkflowAlreadyStartedError:
        raise RefusedError(f"the tree {root} was opened again by somebody else", f"service job tree {root}") from None
    return Retried(order.job_id, reopened=True)


async def _was_lost(service: Service, root: str) -> bool:
    """Its task is blocked because its workflow was ended from outside, and not by anything of its own."""
    tree, task = stored.get(service.store, root), stored_jobs.task_of(service.store, root)
    blocked = task is not None and task.state is TaskState.BLOCKED
    return blocked and tree is not None and tree.state is not None and not tree.state.closed


async def _take_up(service: Service, client: Client, root: str, actor: str) -> Retried:
    """The tree goes on where it was interrupted."""
    tree, task = stored.get(service.store, root), stored_jobs.task_of(service.store, root)
    if tree is None or tree.state is None or task is None:
        raise RefusedError(f"the tree {root} cannot go on: its state is not kept", f"service job tree {root}")
    if why_not := refuse_taking_up(tree.state):
        raise RefusedError(why_not, outside.anew(tree.start))
    now = time.time()
    order = TreeTakenUp(now=now, actor=actor, why=task.reason, since=task.ended_at or now)
    again = TreeStart(input=tree.start, host=tree.host, state=tree.state, taken_up=order)
    try:
        await _start_workflow(client, service.settings, again)
    except WorkflowAlreadyStartedError:
        raise RefusedError(f"the tree {root} was opened again by somebody else", f"service job tree {root}") from None
    return Retried(root, reopened=True)


async def _start_workflow(
    client: Client,
    settings: Settings,
    tree: TreeStart,
    reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
) -> None:
    first = tree.input
    await client.start_workflow(
        DelegationTree.run,
        tree,
        id=first.root_job_id,
        id_reuse_policy=reuse,
        task_queue=settings.temporal.task_queue,
        static_summary=f"{first.action} {first.repo} - {first.worker.name}: {first.title}"[:SUMMARY_LIMIT],
        static_details=f"In a terminal: `service job tree {first.root_job_id} --watch`",
        search_attributes=search.attributes(root_run(first), JobState.RUNNING.value),
        rpc_timeout=RPC_TIMEOUT,
    )
