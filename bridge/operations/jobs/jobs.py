"""Reading jobs and trees."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from activities.store import attempt_rows, event_rows, job_rows, placements, round_rows, tree_rows
from activities.store.job_rows import JobFilter
from bridge.operations.jobs import binding_view, hosts
from bridge.operations.jobs.binding_view import NOTHING, Belonging
from bridge.operations.jobs.hosts import OtherHost
from bridge.operations.paging import check_search
from bridge.operations.service import Service
from workflows.github.effective_jobs import chain_of
from workflows.model import ids
from workflows.model.errors import NotFoundError, ServiceError, UsageError, with_nearest
from workflows.model.rows import EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.spend import Ledger
from workflows.model.states import JobState, TaskState
from workflows.policy.bounds import ledger_of
from workflows.policy.decisions import state_label
from workflows.policy.tree_states import TreeState, tree_state
from workflows.text.durations import clock

if TYPE_CHECKING:
    from activities.runs.status import RunStatus

Deps = Mapping[tuple[str, str], Sequence[str]]
"""By coordinator's job id and leg: the legs of the same result that this leg depends on."""


FORGED = "Its result is not shown: what the store has of its end was not sealed with a key of this service."


@dataclass(frozen=True)
class JobDetail:
    """All facts about one job."""

    job: JobRecord
    task: TaskRecord | None
    payload: dict[str, Any] | None
    diagnostics: dict[str, Any] | None
    worktree: str | None
    live: "RunStatus | None" = None
    attempts: tuple[attempt_rows.AttemptRow, ...] = ()
    state_label: str = ""
    """The job's state in words for people."""
    belongs_to: Belonging = NOTHING
    host: str = ""
    """The host that runs or will run the job's attempt; empty if there is none yet, or only one host."""


def check_id(job_id: str) -> None:
    """Raise if this cannot be a job's id."""
    if ids.root_of(job_id) is None:
        raise UsageError(
            f"{job_id!r} is not a job id; they look like job-0c5e2v7q9a3k or job-0c5e2v7q9a3k.2", "service job list"
        )


def get(service: Service, job_id: str) -> JobRecord:
    """Return one job; raise `NotFoundError` if it does not exist."""
    check_id(job_id)
    job = job_rows.get(service.store, job_id)
    if job is None:
        root = str(ids.root_of(job_id))
        known = job_rows.get(service.store, root)
        raise NotFoundError(f"no job {job_id}", f"service job tree {root}" if known else "service job list")
    return job


def states_by_name(name: str | None) -> tuple[JobState, ...]:
    """Return the state with this name; without a name any state will do."""
    if name is None:
        return ()
    if name in list(JobState):
        return (JobState(name),)
    way = f"service job list --state {name}" if name in list(TaskState) else ""
    error = UsageError(f"{name!r} is not a job state; they are {', '.join(JobState)}", way)
    raise error if way else with_nearest(error, name, JobState)


def find(service: Service, wanted: JobFilter) -> list[JobRecord]:
    """Return the newest jobs that match; `tree` may be any job of the tree."""
    check_search(wanted.text)
    if wanted.tree is not None:
        wanted = replace(wanted, tree=get(service, wanted.tree).root_job_id)
    return hosts.with_reasons(service, job_rows.find(service.store, wanted))


def last_outcomes(service: Service, days: int, most: int) -> dict[str, list[JobRecord]]:
    """Return by agent the last jobs of these days that have ended, the newest first."""
    return job_rows.last_ended(service.store, time.time() - days * 86_400, most)


def state_labels(service: Service, jobs: Sequence[JobRecord]) -> dict[str, str]:
    """Return the state of each of these jobs for people, by job id (`state_label`)."""
    asking = {job.root_job_id for job in jobs if job.state is JobState.BLOCKED}
    rounds = round_rows.of_trees(service.store, asking) if asking else []
    return {job.job_id: state_label(job, rounds) for job in jobs}


def titles(service: Service, jobs: Sequence[JobRecord]) -> dict[str, str]:
    """Return the titles of the tasks of these trees, by root job id."""
    return job_rows.titles(service.store, {job.root_job_id for job in jobs})


@dataclass(frozen=True)
class Tree:
    """A whole tree: its task, its jobs in dispatch order, its bounds."""

    task: TaskRecord
    jobs: tuple[JobRecord, ...]
    bounds: Bounds
    belongs_to: Belonging = NOTHING
    rounds: tuple[RoundRecord, ...] = ()
    """The oldest first."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The host of each job that has one, by job id, where several share the store."""

    @property
    def over(self) -> bool:
        """Return whether the tree is closed and all its jobs have ended, so that nothing changes without an order."""
        return self.task.state.is_closed and all(job.state.has_ended for job in self.jobs)

    @property
    def state(self) -> TreeState:
        """Return the state of the tree in one word."""
        running = any(job.state is JobState.RUNNING for job in self.jobs)
        return tree_state(self.task.state, self.task.waits_for, running=running)

    @property
    def final_summary(self) -> str:
        """Return the summary of the ended tree: its coordinator's, else that of the job that ended last.

        Empty while the tree continues, and if no job has a summary.
        """
        if not self.over or not self.jobs:
            return ""
        own = chain_of(self.jobs, self.jobs[0]).jobs
        by_end = sorted(self.jobs, key=lambda job: job.ended_at or 0.0)
        return next((job.summary for job in (*reversed(own), *reversed(by_end)) if job.summary), "")

    @property
    def spent(self) -> Ledger:
        """Return how much of its bounds the tree has used, according to the store."""
        return ledger_of(self.task, self.jobs, time.time())


def tree(service: Service, job_id: str) -> Tree:
    """Return the tree that a job belongs to."""
    root = get(service, job_id).root_job_id
    task, kept = job_rows.task_of(service.store, root), tree_rows.get(service.store, root)
    if task is None:
        raise NotFoundError(f"no task {root}", "service job list")
    bounds = kept.start.settings.bounds if kept else service.settings.snapshot().bounds
    jobs = tuple(hosts.with_reasons(service, job_rows.tree(service.store, root)))
    belongs_to = binding_view.belonging(service, jobs[0]) if jobs else NOTHING
    places = placements.hosts_in(service.store, root) if service.settings.is_fleet else {}
    return Tree(task, jobs, bounds, belongs_to, tuple(round_rows.of_tree(service.store, root)), places)


def events(
    service: Service,
    job_id: str,
    *,
    after: int = 0,
    limit: int | None = None,
    whole_tree: bool | None = None,
) -> list[EventRecord]:
    """Return lifecycle events. By default, return the whole tree's for a root job, else the job's own; `whole_tree`
    overrides that.
    """
    job = get(service, job_id)
    whole = job.job_id == job.root_job_id if whole_tree is None else whole_tree
    only = None if whole else job.job_id
    return event_rows.of_tree(service.store, job.root_job_id, job_id=only, after=after, limit=limit)


def waits(service: Service, job_id: str) -> list[EventRecord]:
    """Return the deferrals of a job or a whole tree: the periods in which a runtime could not work."""
    job = get(service, job_id)
    return [
        EventRecord(
            event_id=f"{deferral.job_id}.{deferral.attempt}-w{deferral.number}",
            job_id=deferral.job_id,
            root_job_id=job.root_job_id,
            kind="runtime_waits",
            at=deferral.at,
            message=f"waits for {deferral.runtime} until {clock(deferral.until)}: {deferral.message}",
            data={
                "attempt": deferral.attempt,
                "number": deferral.number,
                "kind": deferral.kind,
                "until": deferral.until,
            },
        )
        for deferral in attempt_rows.deferrals_of_job(service.store, job_id)
    ]


def detail(service: Service, job_id: str) -> JobDetail:
    """Return one job with its result, its observation and the evidence of its last attempt."""
    [job] = hosts.with_reasons(service, [get(service, job_id)])
    runs = attempt_rows.of_job(service.store, job_id)
    last = runs[-1] if runs else None
    return JobDetail(
        job=job,
        task=job_rows.task_of(service.store, job.root_job_id),
        payload=last.payload if last else None,
        diagnostics={"forged": FORGED} if last and last.is_forged else last.diagnostics if last else None,
        worktree=last.worktree if last else None,
        belongs_to=binding_view.belonging(service, job),
        live=live(service, job),
        attempts=tuple(runs),
        state_label=state_labels(service, [job])[job.job_id],
        host=_host_of(service, job, last),
    )


def _host_of(service: Service, job: JobRecord, last: attempt_rows.AttemptRow | None) -> str:
    if not service.settings.is_fleet:
        return last.host if last and last.host != service.settings.host else ""
    begun = last.host if last and last.attempt == job.attempt else ""
    return begun or placements.placed_on(service.store, job.job_id, job.attempt)


def live(service: Service, job: JobRecord) -> "RunStatus | None":
    """Return the progress of a running job's agent; None when it does not run, or its host can't be asked."""
    if job.state is not JobState.RUNNING:
        return None
    from activities.runs.status import RunStage, RunStatus, look

    run = attempt_rows.get(service.store, job.job_id, job.attempt)
    if run is None:
        return RunStatus()
    if run.host != service.settings.host:
        with suppress(ServiceError):
            there = OtherHost(service, run.host, f"{job.job_id} runs", f"service job show {job.job_id}")
            return TypeAdapter(RunStatus | None).validate_json(there.text(f"jobs/{job.job_id}/live"))
        return None
    seen = look(Path(run.run_dir))
    put_off = attempt_rows.deferrals_of_run(service.store, job.job_id, job.attempt)[-1:]
    waits = seen.stage is RunStage.ENDED and any(each.until > time.time() for each in put_off)
    return replace(seen, stage=RunStage.PUT_OFF) if waits else seen


def edges_of_tree(service: Service, tree: Tree) -> tuple[tuple[str, str], ...]:
    """Return the edges of a tree's graph as edges of job ids, the earlier job first."""
    handed_out = {job.parent_job_id for job in tree.jobs if job.parent_job_id and job.delegation_id}
    kept = tree_rows.get(service.store, tree.task.root_job_id)
    deps = {(tree.task.root_job_id, leg.id): leg.deps for leg in (kept.start.legs if kept else ())}
    return tuple(edges(tree.jobs, deps | attempt_rows.dependencies(service.store, handed_out)))


def edges(jobs: Sequence[JobRecord], deps: Deps) -> Iterator[tuple[str, str]]:
    """Yield the edges. A leg that delegated ends with its last continuation, so jobs that depend on the leg follow that
    one.
    """
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
    """Return the last continuation of a job that delegated; else the job itself."""
    seen = {job.job_id}
    while (after := then.get(job.job_id)) and after.job_id not in seen:
        seen.add(after.job_id)
        job = after
    return job.job_id
