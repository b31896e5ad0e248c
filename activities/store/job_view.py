"""All that the bridge shows of a job, in one indexed query (ruling J6)."""

from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, and_, bindparam, func, or_, select

from activities.store import attempts, schema
from activities.store.database import clock
from activities.store.placements import host_of

_JOB, _ATTEMPT, _ROUND = schema.jobs.c, schema.attempts.c, schema.rounds.c
JOB_COLUMNS = tuple(column.name for column in schema.jobs.c if column.name != "revision")
ROUND_COLUMNS = (
    *("round_id", "coordinator_id", "number", "kind", "digest", "questions", "failing"),
    *("verbs", "commands", "opened_at", "expires_at"),
)


def read(engine: Engine, job_id: str) -> dict[str, Any] | None:
    """Read the job, the payload of its current attempt, its repository's path, its open round, and its host."""
    with engine.connect() as connection:
        row = connection.execute(_QUERY, {"wanted": job_id}).first()
        if row is None:
            return None
        values = dict(row._mapping)
        return values if attempts.believed(connection, values, ("payload",)) else values | {"payload": None}


def _query() -> Select[Any]:
    attempt = and_(_ATTEMPT.job_id == _JOB.job_id, _ATTEMPT.attempt == _JOB.attempt)
    paused = and_(
        _ROUND.root_job_id == _JOB.root_job_id,
        _ROUND.closed_at.is_(None),
        or_(_ROUND.coordinator_id == _JOB.job_id, _ROUND.job_id == _JOB.job_id),
    )
    tables = schema.jobs.outerjoin(schema.attempts, attempt).outerjoin(schema.rounds, paused)
    tables = tables.outerjoin(schema.trees, schema.trees.c.root_job_id == _JOB.root_job_id)
    tables = tables.outerjoin(schema.hosts, schema.hosts.c.name == host_of())
    columns = [
        *(_JOB[name] for name in JOB_COLUMNS),
        *(_ROUND[name].label(f"round_{name}") for name in ROUND_COLUMNS),
        _ATTEMPT.payload,
        _ATTEMPT.seals,
        _path().label("path"),
        host_of().label("host"),
        schema.hosts.c.seen_at.label("host_seen_at"),
        schema.hosts.c.stopped_at.label("host_stopped_at"),
        schema.hosts.c.held.label("host_held"),
        clock().label("host_now"),
    ]
    return select(*columns).select_from(tables).where(_JOB.job_id == bindparam("wanted"))


def _path() -> ColumnElement[str]:
    """Select the checkout on the tree's host, else the one that was registered first."""
    table = schema.checkouts.c
    paths = select(table.path).where(table.repo == _JOB.repo).limit(1).correlate(schema.jobs, schema.trees)
    on_its_host = paths.where(table.host == schema.trees.c.host).scalar_subquery()
    return func.coalesce(on_its_host, paths.order_by(table.added_at, table.host).scalar_subquery())


_QUERY = _query()
