"""Starting a tree's workflow."""

import time
from typing import TYPE_CHECKING

from temporalio.client import Client
from temporalio.service import RPCError

from activities.settings.model import Settings
from activities.temporal import RPC_TIMEOUT
from bridge.operations.service import Service
from workflows import search
from workflows.contract.models import Action
from workflows.delegation_tree import DelegationTree, TreeStart
from workflows.tree import ids
from workflows.tree.jobs import JobRun, JobState, Worker
from workflows.tree.records import Records
from workflows.tree.reducer import new_tree
from workflows.tree.state import TreeInput

if TYPE_CHECKING:
    from bridge.operations.jobs import Order

TITLE_LENGTH = 80
START_FAULTS = (RPCError, RuntimeError, OSError)


def first_words(service: Service, order: "Order", worker: Worker, job_id: str, host: str) -> TreeStart:
    """What the tree's workflow begins with; a long message travels by digest."""
    title = order.message.strip().splitlines()[0]
    tree = TreeInput(
        root_job_id=job_id,
        task_id=ids.task_id(job_id),
        title=title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1] + "…",
        repo=order.repo,
        worker=worker,
        action=Action(order.action),
        prompt=service.artifacts.text(order.message),
        settings=service.settings.snapshot(),
        created_at=time.time(),
        model=order.model,
        effort=order.effort,
    )
    return TreeStart(input=tree, host=host)


async def start(client: Client, settings: Settings, tree: TreeStart) -> None:
    """Start the workflow under the root job's id."""
    first = tree.input
    await client.start_workflow(
        DelegationTree.run,
        tree,
        id=first.root_job_id,
        task_queue=settings.temporal.task_queue,
        static_summary=f"{first.action} {first.repo} - {first.worker.name}: {first.title}"[:200],
        search_attributes=search.attributes(_root_run(first), JobState.RUNNING.value),
        rpc_timeout=RPC_TIMEOUT,
    )


def queued(tree: TreeInput) -> Records:
    """The rows a tree begins with, so that a job can be looked at before a worker has seen it."""
    state = new_tree(tree)
    return Records(task=state.task, jobs=tuple(state.jobs.values()))


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
