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

from activities.cluster import not_taken
from activities.settings.model import Settings
from activities.store import jobs as stored_jobs
from activities.store import trees as stored
from activities.temporal import RPC_TIMEOUT, connect
from bridge.operations import jobs
from bridge.operations.service import Service
from workflows import search
from workflows.delegation_tree import DelegationTree
from workflows.errors import RefusedError, UnreachableError
from workflows.messages import Kill, Retry, TreeStart
from workflows.tree import ids
from workflows.tree.commands import CloseTree
from workflows.tree.events import RetryRequested
from workflows.tree.jobs import JobRun, JobState, TaskState
from workflows.tree.records import Records
from workflows.tree.reducer import new_tree
from workflows.tree.reopening import refuse_retry
from workflows.tree.state import TreeInput

SUMMARY_LIMIT = 200


@dataclass(frozen=True)
class Retried:
    """A job that runs again."""

    job_id: str
    reopened: bool
    """The tree was over; it has been opened again for this."""


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


async def kill(service: Service, job_id: str, *, actor: str, immediate: bool) -> str:
    """End the tree a job belongs to (ruling G2). The order waits for a worker if there is none."""
    root = jobs.get(service, job_id).root_job_id
    handle = (await connect(service.home, service.settings)).get_workflow_handle(root)
    try:
        order = Kill(actor=actor, immediate=immediate)
        await handle.signal(DelegationTree.kill, order, rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise UnreachableError(f"Temporal did not take the order: {error}", "service daemon status") from None
        task = stored_jobs.task_of(service.store, root)
        state = task.state if task else "over"
        raise RefusedError(f"the tree {root} has ended ({state})", f"service job tree {root}") from None
    return root


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
        over = f"the tree {root} is {task.state if task else 'over'}: nothing in it waits to be run again"
        raise RefusedError(over, f"service job tree {root}")
    if why_not := refuse_retry(tree.state, order.job_id):
        raise RefusedError(why_not, f"service job tree {root}")
    again = TreeStart(input=tree.start, host=tree.host, state=tree.state, retry=order)
    try:
        await _start_workflow(client, service.settings, again)
    except WorkflowAlreadyStartedError:
        raise RefusedError(f"the tree {root} was opened again by somebody else", f"service job tree {root}") from None
    return Retried(order.job_id, reopened=True)


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
        search_attributes=search.attributes(_root_run(first), JobState.RUNNING.value),
        rpc_timeout=RPC_TIMEOUT,
    )


def _root_run(tree: TreeInput) -> JobRun:
    return JobRun(
        job_id=tree.root_job_id,
        root_job_id=tree.root_job_id,
        task_id=tree.task_id,
        repo=tree.repo,
        worker=tree.worker,
        action=tree.action,
        prompt=tree.prompt,
        pull_request=tree.pull_request,
    )
