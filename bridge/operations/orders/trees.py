"""Orders about whole trees: start, end, retry a failed job."""

import asyncio
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass

from pydantic import BaseModel, Field
from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy

from activities.stations.hook import reach
from activities.store import job_rows, run_rows, tree_rows
from activities.temporal import RPC_TIMEOUT
from bridge.operations import temporal
from bridge.operations.branches import branches
from bridge.operations.branches.branches import BranchState, LegBranch
from bridge.operations.jobs import jobs
from bridge.operations.pipelines import workflows
from bridge.operations.service import Service
from bridge.operations.temporal import (
    CATCHES_UP,
    AlreadyStartedError,
    NoWorkerError,
    NoWorkflowError,
    OrderDeclinedError,
    client_of,
    settle,
    starting,
    translate_errors,
)
from workflows.model import ids
from workflows.model.errors import RefusedError
from workflows.model.orders import Kill, Retry
from workflows.model.rows import Records
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy import binding_words
from workflows.temporal import search
from workflows.temporal.calls import TASK_TIMEOUT
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import TreeStart
from workflows.text.markdown import summary_line
from workflows.tree.events import RetryRequested, TreeTakenUp
from workflows.tree.reducer import new_tree, root_run
from workflows.tree.reopen import refuse_retry, refuse_taking_up
from workflows.tree.state import TreeInput


class RetryAnswer(BaseModel):
    """A job that runs again."""

    job_id: str
    reopened: bool = Field(description="True if its task had ended, and was re-opened.")


@dataclass(frozen=True)
class Killed:
    """A tree that an order has ended or is ending."""

    root_job_id: str
    over: bool
    """True if it was blocked and has ended now; False while it is being ended."""
    unmerged: tuple[LegBranch, ...] = ()
    """Branches with unmerged work."""

    @property
    def unmerged_branches(self) -> list[str]:
        return [leg.branch for leg in self.unmerged]


def new_root_id() -> str:
    """Return the id of a new tree (ruling B1)."""
    return ids.root_id(time.time_ns() // 1_000_000, secrets.randbits(ids.RANDOM_BITS))


async def start(service: Service, tree: TreeInput, host: str) -> str:
    """Start a tree completely, or on an error show nothing. Idempotent.

    Its start is recorded before its workflow exists: else a tree whose bridge dies in between would run without one,
    and never be merged. Alone it shows nowhere.
    """
    tree_rows.begin(service.store, tree, host)
    with suppress(AlreadyStartedError):
        first = TreeStart(input=tree, host=host, placed=service.settings.is_fleet)
        await _start_workflow(service, await client_of(service), first, WorkflowIDReusePolicy.REJECT_DUPLICATE)
    reach("tree started", tree.root_job_id)
    state = new_tree(tree)
    tree_rows.begin(service.store, tree, host, Records(task=state.task, jobs=tuple(state.jobs.values())))
    return tree.root_job_id


async def kill(service: Service, job_id: str, *, actor: str, immediate: bool) -> Killed:
    """End the tree a job belongs to (ruling G2). Without a worker the order waits for one.

    A blocked tree that is closed is dismissed; an ended tree is refused.
    """
    root = jobs.get(service, job_id).root_job_id
    _refuse_over(service, root)
    client = await client_of(service)
    try:
        with translate_errors():
            order = Kill(actor=actor, immediate=immediate)
            await client.get_workflow_handle(root).signal(DelegationTree.kill, order, rpc_timeout=RPC_TIMEOUT)
    except NoWorkflowError:
        return await _end_closed(service, client, root, actor)
    return Killed(root, over=False)


async def dismiss(service: Service, job_id: str, *, actor: str) -> Killed:
    """Dismiss a blocked task permanently: reminders end, and no retry can reopen the task (ruling D4)."""
    root = jobs.get(service, job_id).root_job_id
    task = job_rows.task_of(service.store, root)
    if task is not None and not task.state.is_closed:
        client = await client_of(service)
        if await settle(service, client, root) is None:
            raise RefusedError(f"the task {root} is not blocked: {task.state}", f"service job kill {root}")
        return await _end_closed(service, client, root, actor)
    return await kill(service, root, actor=actor, immediate=True)


async def _end_closed(service: Service, client: Client, root: str, actor: str) -> Killed:
    """Dismiss a blocked task without a workflow, whether it closed or was ended from outside."""
    await settle(service, client, root)
    _refuse_over(service, root)
    task = job_rows.task_of(service.store, root)
    if task is None or task.state is not TaskState.BLOCKED:
        raise RefusedError(f"the task {root} is ending right now", f"service job tree {root}")
    job_rows.dismiss(service.store, task, actor)
    legs = branches.of_tree(service, root).legs
    return Killed(root, over=True, unmerged=tuple(leg for leg in legs if leg.state is BranchState.UNMERGED))


def _refuse_over(service: Service, root: str) -> None:
    """Raise if the tree has ended."""
    task = job_rows.task_of(service.store, root)
    if task is not None and task.state.has_ended:
        over = f"there is nothing to end: the task {root} is {task.state}: {task.reason}"
        raise RefusedError(over, f"service job tree {root}")


async def retry(service: Service, job_id: str, *, actor: str, request_id: str = "") -> RetryAnswer:
    """Run a failed job again. Re-open its tree if that is closed because it was blocked (ruling D4).

    An open tree acts once on a request id.
    """
    root = jobs.get(service, job_id).root_job_id
    client, until = await client_of(service), time.monotonic() + CATCHES_UP
    handle, order = client.get_workflow_handle(root), Retry(actor=actor, job_id=job_id)
    while True:
        try:
            with translate_errors():
                await handle.execute_update(DelegationTree.retry, order, id=request_id or None, rpc_timeout=RPC_TIMEOUT)
            return RetryAnswer(job_id=job_id, reopened=False)
        except OrderDeclinedError as no:
            if jobs.get(service, job_id).waits_for is WaitsFor.RETRY and time.monotonic() < until:
                await asyncio.sleep(0.2)
                continue
            raise RefusedError(no.message, f"service job tree {job_id}") from None
        except NoWorkerError as late:
            raise NoWorkerError(late.message, f"service job show {job_id}") from None
        except NoWorkflowError:
            await settle(service, client, root)
            break
    if _was_lost(service, root):
        return await _take_up(service, client, root, actor)
    return await _reopen(service, client, root, RetryRequested(now=time.time(), actor=actor, job_id=job_id))


async def _reopen(service: Service, client: Client, root: str, order: RetryRequested) -> RetryAnswer:
    tree, task = tree_rows.get(service.store, root), job_rows.task_of(service.store, root)
    if task is None or task.state is not TaskState.BLOCKED or tree is None or tree.state is None:
        state = f"{task.state}: {task.reason}" if task else "over"
        what_next = task.next if task and task.next else f"service job tree {root}"
        raise RefusedError(f"nothing of the task {root} waits to be run again; it is {state}", what_next)
    if why_not := refuse_retry(tree.state, order.job_id):
        raise RefusedError(why_not, f"service job tree {root}")
    again = TreeStart(input=tree.start, host=tree.host, placed=service.settings.is_fleet, state=tree.state, retry=order)
    stage = run_rows.stage_of(service.store, root)
    if stage is None or not await workflows.reopen(service, client, stage, again):
        await _open_again(service, client, again)
    return RetryAnswer(job_id=order.job_id, reopened=True)


def _was_lost(service: Service, root: str) -> bool:
    """Return whether the task is blocked only because its workflow was ended from outside."""
    tree, task = tree_rows.get(service.store, root), job_rows.task_of(service.store, root)
    blocked = task is not None and task.state is TaskState.BLOCKED
    return blocked and tree is not None and tree.state is not None and not tree.state.closed


async def _take_up(service: Service, client: Client, root: str, actor: str) -> RetryAnswer:
    """Restart the tree's workflow from the state in the store."""
    tree, task = tree_rows.get(service.store, root), job_rows.task_of(service.store, root)
    if tree is None or tree.state is None or task is None:
        raise RefusedError(f"the task {root} cannot go on: its state is not kept", f"service job tree {root}")
    if why_not := refuse_taking_up(tree.state):
        raise RefusedError(why_not, tree.start.anew)
    now = time.time()
    order = TreeTakenUp(now=now, actor=actor, why=task.reason, since=task.ended_at or now)
    again = TreeStart(
        input=tree.start, host=tree.host, placed=service.settings.is_fleet, state=tree.state, taken_up=order
    )
    await _open_again(service, client, again)
    return RetryAnswer(job_id=root, reopened=True)


async def _open_again(service: Service, client: Client, again: TreeStart) -> None:
    root = again.input.root_job_id
    try:
        await _start_workflow(service, client, again)
    except AlreadyStartedError:
        raise RefusedError(f"the task {root} was opened again by somebody else", f"service job tree {root}") from None


async def _start_workflow(
    service: Service,
    client: Client,
    tree: TreeStart,
    reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
) -> None:
    first, asked, root = tree.input, tree.input.assignment, tree.input.root_job_id
    github = binding_words.address(asked.github, asked.pull_request, asked.issue, service.settings.github.web)
    async with starting(client, "the job"):
        await client.start_workflow(
            DelegationTree.run,
            tree,
            id=root,
            id_reuse_policy=reuse,
            task_queue=service.settings.temporal.task_queue,
            task_timeout=TASK_TIMEOUT,
            static_summary=summary_line("root", f"{asked.worker.name} {asked.action}", first.title, first.repo),
            static_details=temporal.web_ui_details(
                service, f"service job tree {root} --watch", f"/ui/trees/{root}", github
            ),
            search_attributes=search.attributes(root_run(first), JobState.RUNNING.value),
            rpc_timeout=RPC_TIMEOUT,
        )
