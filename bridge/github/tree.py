"""A bound tree as its comments are made from: its rows, and who is to be told (ruling L3)."""

from dataclasses import replace

from activities.store import branches, events, jobs, rounds, trees
from activities.store.github.threads import Thread
from bridge.operations.service import Service
from workflows.contract.canonical import from_canonical
from workflows.contract.models import ServiceResult
from workflows.github.bound import BoundTree, last_job
from workflows.model.errors import NotFoundError
from workflows.model.rows import JobRecord
from workflows.model.settings import TreeSettings


def read(service: Service, thread: Thread, dashboard: str = "") -> BoundTree | None:
    """Everything of it as the store has it; None when its rows are not there yet."""
    store, root = service.store, thread.root_job_id
    task = jobs.task_of(store, root)
    if task is None:
        return None
    kept = trees.get(store, root)
    settings = kept.start.settings if kept else TreeSettings()
    tree = BoundTree(
        task=task,
        jobs=tuple(jobs.tree(store, root)),
        rounds=tuple(rounds.of_tree(store, root)),
        events=tuple(events.of_tree(store, root)),
        bounds=settings.bounds,
        handle=settings.escalation_handle or "",
        owner=thread.github.partition("/")[0],
        dashboard=dashboard,
        merged=frozenset(event.branch for _, _, event in branches.told(store, root) if event.merged),
    )
    last = last_job(tree)
    return replace(tree, result=result_of(service, last) if last else None)


def seq(tree: BoundTree) -> int:
    """The last event it tells of."""
    return max((event.seq for event in tree.events), default=0)


def result_of(service: Service, job: JobRecord) -> ServiceResult | None:
    """What a job returned, as it was kept on the host that ran it."""
    if job.result_digest is None:
        return None
    try:
        return from_canonical(service.artifacts.get(job.result_digest))
    except (NotFoundError, OSError, ValueError, KeyError):
        return None
