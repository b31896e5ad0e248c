"""The stalls that the workers found last. A store without stalls is not written to."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine, Select, delete, or_, select

from activities.store import schema
from activities.store.queries import Database, insert_new, rows, write
from workflows.model.states import JobState
from workflows.policy.stalls import Stall, StallKind

_TABLE = schema.stalls


def replace(engine: Engine, kind: StallKind, host: str, stalls: Sequence[Stall]) -> None:
    """Replace the stalls of a kind that this host found before; those that still last keep their time."""
    mine = (_TABLE.c.kind == kind.value) & (_TABLE.c.host == host)
    with engine.begin() as connection:
        since = {row.what: row.since for row in rows(connection, select(_TABLE).where(mine))}
        write(connection, delete(_TABLE).where(mine))
        new = ({**vars(stall), "kind": kind.value, "since": since.get(stall.what, stall.since)} for stall in stalls)
        insert_new(connection, _TABLE, *new)


def lasting() -> Select[Any]:
    """Select the stalls whose job has not ended since, by its row."""
    jobs = schema.jobs
    query = select(_TABLE).outerjoin(jobs, jobs.c.job_id == _TABLE.c.what)
    step, has_no_job = _TABLE.c.kind == StallKind.STEP.value, jobs.c.state.is_(None)
    return query.where(or_(step, has_no_job, jobs.c.state == JobState.RUNNING.value))


def every(store: Database) -> list[Stall]:
    """Return every stall, oldest first."""
    return [
        Stall(StallKind(row.kind), row.what, row.attempt, row.since, row.host)
        for row in rows(store, lasting().order_by(_TABLE.c.since, _TABLE.c.what))
    ]
