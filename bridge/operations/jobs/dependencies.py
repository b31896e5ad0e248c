"""The edges of a tree's graph: from a coordinator or a dependency to each leg, then to the continuations."""

from collections.abc import Iterator, Mapping, Sequence

from activities.store import attempts
from activities.store import trees as stored
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.model.rows import JobRecord

Deps = Mapping[tuple[str, str], Sequence[str]]
"""By coordinator's job id and leg: the legs of the same result that this leg depends on."""


def of_tree(service: Service, tree: Tree) -> tuple[tuple[str, str], ...]:
    """Return the edges of a tree's graph as pairs of job ids, the earlier job first."""
    handed_out = {job.parent_job_id for job in tree.jobs if job.parent_job_id and job.delegation_id}
    kept = stored.get(service.store, tree.task.root_job_id)
    deps = {(tree.task.root_job_id, leg.id): leg.deps for leg in (kept.start.legs if kept else ())}
    return tuple(pairs(tree.jobs, deps | attempts.dependencies(service.store, handed_out)))


def pairs(jobs: Sequence[JobRecord], deps: Deps) -> Iterator[tuple[str, str]]:
    """Yield the edges. Dependents of a leg that delegated follow the leg's last continuation, with which it ends."""
    legs: dict[str, dict[str, JobRecord]] = {}
    then: dict[str, JobRecord] = {}
    for job in jobs:
        if job.parent_job_id and job.delegation_id:
            legs.setdefault(job.parent_job_id, {})[job.delegation_id] = job
        elif job.parent_job_id:
            then[job.parent_job_id] = job
    for parent, batch in legs.items():
        waits = {leg: [each for each in deps.get((parent, leg), ()) if each in batch] for leg in batch}
        for leg, job in batch.items():
            yield from ((_last(batch[each], then), job.job_id) for each in waits[leg])
            if not waits[leg]:
                yield parent, job.job_id
    for job in jobs:
        if job.parent_job_id and not job.delegation_id:
            batch = legs.get(job.parent_job_id, {})
            awaited = {each for leg in batch for each in deps.get((job.parent_job_id, leg), ())}
            ends = [_last(each, then) for leg, each in batch.items() if leg not in awaited]
            yield from ((each, job.job_id) for each in ends or [job.parent_job_id])


def _last(job: JobRecord, then: Mapping[str, JobRecord]) -> str:
    """Return the last job of a coordinator; for a leg that delegated nothing, the leg itself."""
    seen = {job.job_id}
    while (after := then.get(job.job_id)) and after.job_id not in seen:
        seen.add(after.job_id)
        job = after
    return job.job_id
