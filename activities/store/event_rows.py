"""Lifecycle events: written once by id, in one sequence for each tree, operators' events too (ruling B7)."""

from collections.abc import Sequence

from sqlalchemy import Engine, func, select, text

from activities.store import schema
from activities.store.queries import Database, insert, one, rows, transaction, write
from workflows.model.rows import EventRecord

_NEXT = text("(SELECT coalesce(max(seq), 0) + 1 FROM events AS earlier WHERE root_job_id = :root)")


def tell(store: Database, events: Sequence[EventRecord]) -> None:
    """Insert new events, each with the next number in its tree's sequence."""
    if not events:
        return
    root = events[0].root_job_id
    with transaction(store) as connection:
        if connection.dialect.name == "postgresql":  # serialise writers of one tree; SQLite serialises all
            one(connection, select(func.pg_advisory_xact_lock(func.hashtext(root))))
        in_sequence = insert(connection.dialect.name, schema.events).values(seq=_NEXT.bindparams(root=root))
        new = [event.model_dump(mode="json", exclude={"seq"}) for event in events]
        write(connection, in_sequence.on_conflict_do_nothing(), new)


def of_tree(
    engine: Engine,
    root_job_id: str,
    *,
    job_id: str | None = None,
    kind: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[EventRecord]:
    """Return a tree's events after a number in its sequence, in order; if given, only those of one job or kind."""
    query = select(schema.events).where(schema.events.c.root_job_id == root_job_id, schema.events.c.seq > after)
    if job_id:
        query = query.where(schema.events.c.job_id == job_id)
    if kind:
        query = query.where(schema.events.c.kind == kind)
    query = query.order_by(schema.events.c.seq).limit(limit)
    return [EventRecord.model_validate(dict(row._mapping)) for row in rows(engine, query)]
