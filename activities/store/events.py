"""Lifecycle events: written once by id, in one sequence for each tree, operators' events too (ruling B7)."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, bindparam, func, select

from activities.store import schema
from activities.store.database import inserting
from workflows.model.rows import EventRecord

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert


def tell(connection: Connection, events: Sequence[EventRecord]) -> None:
    """Insert new events, each at the next place in its tree's sequence."""
    if not events:
        return
    root = events[0].root_job_id
    if connection.dialect.name == "postgresql":  # serialise writers of one tree; SQLite serialises all
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(root))))
    rows: list[dict[str, Any]] = [event.model_dump(mode="json", exclude={"seq"}) | {"tree": root} for event in events]
    connection.execute(_in_sequence(connection.dialect.name), rows)


@cache
def _in_sequence(dialect_name: str) -> "PostgresInsert | SqliteInsert":
    earlier = schema.events.alias("earlier")
    highest = select(func.coalesce(func.max(earlier.c.seq), 0) + 1)
    place = highest.where(earlier.c.root_job_id == bindparam("tree")).scalar_subquery()
    return inserting(dialect_name, schema.events).values(seq=place)


def of_tree(
    engine: Engine,
    root_job_id: str,
    *,
    job_id: str | None = None,
    kind: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[EventRecord]:
    """Return a tree's events after a place in its sequence, in order; only one job's or one kind, if given."""
    query = select(schema.events).where(schema.events.c.root_job_id == root_job_id, schema.events.c.seq > after)
    if job_id:
        query = query.where(schema.events.c.job_id == job_id)
    if kind:
        query = query.where(schema.events.c.kind == kind)
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(schema.events.c.seq).limit(limit)).all()
    return [EventRecord.model_validate(dict(row._mapping)) for row in rows]
