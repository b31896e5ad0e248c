"""Operators' actions on legs' branches, and the conflicts that wait for one (ruling I5)."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Engine, select

from activities.store import event_rows, schema
from activities.store.queries import rows
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.ids import root_of
from workflows.model.rows import EventRecord
from workflows.model.states import JobState, TaskState
from workflows.text.digests import digest


@dataclass(frozen=True)
class Conflict:
    """A job that could not start because the branches it needs conflict."""

    job_id: str
    root_job_id: str
    ended_at: float
    branch: str
    against: tuple[str, ...]
    files: tuple[str, ...]


def record(engine: Engine, kind: BranchEventKind, job_id: str, event: BranchEvent, message: str) -> None:
    """Record a branch event once for each job, kind and commit, for each set of comments, and for each review."""
    comments = f"-{digest(event.comments)[:12]}" if event.comments else ""
    record = EventRecord(
        event_id=f"{job_id}-{kind}-{event.review or event.head_sha[:12]}{comments}",
        job_id=job_id,
        root_job_id=root_of(job_id) or job_id,
        kind=kind.value,
        at=time.time(),
        message=message,
        data=event.model_dump(mode="json"),
    )
    event_rows.tell(engine, [record])


def events_of(engine: Engine, *roots: str) -> list[tuple[BranchEventKind, str, BranchEvent]]:
    """Return the branch events of these trees, oldest first: kind, job, details."""
    columns = schema.events.c
    query = select(columns.kind, columns.job_id, columns.data).order_by(columns.at)
    query = query.where(columns.root_job_id.in_(roots), columns.kind.in_(list(BranchEventKind)))
    return [
        (BranchEventKind(kind), job_id, BranchEvent.model_validate(data)) for kind, job_id, data in rows(engine, query)
    ]


def conflicts(engine: Engine, roots: Collection[str]) -> list[Conflict]:
    """Return the jobs of these trees that a conflict blocks, if their task is blocked too; oldest first."""
    jobs, attempts, tasks = schema.jobs, schema.attempts, schema.tasks
    same_attempt = (attempts.c.job_id == jobs.c.job_id) & (attempts.c.attempt == jobs.c.attempt)
    query = select(jobs.c.job_id, jobs.c.root_job_id, jobs.c.ended_at, attempts.c.diagnostics)
    query = query.join(attempts, same_attempt).join(tasks, tasks.c.root_job_id == jobs.c.root_job_id)
    query = query.where(tasks.c.state == TaskState.BLOCKED.value, jobs.c.state == JobState.BLOCKED.value)
    query = query.where(jobs.c.root_job_id.in_(roots))
    return [
        Conflict(
            job_id, root, ended_at or 0.0, conflict["branch"], tuple(conflict["against"]), tuple(conflict["files"])
        )
        for job_id, root, ended_at, diagnostics in rows(engine, query.order_by(jobs.c.ended_at))
        if (conflict := (diagnostics or {}).get("conflict"))
    ]
