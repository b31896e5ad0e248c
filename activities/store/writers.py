"""The run of a tree's workflow that may write its rows. Temporal can reset a workflow: then a new run continues from
an earlier state, and repeats the numbers of rows and events. Here they are renumbered (ruling B4: one order).
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, delete, func, select

from activities.store import schema
from activities.store.queries import one, scalar, upsert, write
from workflows.model.rows import Records, Written, shift_event

REMEMBERED = 50
"""Number of former runs that are remembered, so that their late writes are dropped."""


@dataclass(frozen=True)
class TreeWriter:
    """The workflow run that writes. With `anew`, its first rows, of revision `first`, are based on an earlier state
    than the stored rows.
    """

    run_id: str
    first: int
    anew: bool
    shift: int
    event_shift: int | None
    """None until the run writes its first event."""
    former: tuple[str, ...]

    def answer(self, records: Records) -> Written:
        """Return what the workflow run learns about the rows that it wrote."""
        return Written(anew=self.anew and self.first == records.revision, event_shift=self.event_shift or 0)


def renumber(connection: Connection, root: str, run_id: str, records: Records) -> tuple[Records, Written] | None:
    """Return the rows with the store's numbers; None if another run of the workflow has replaced this one."""
    known = get(connection, root)
    if known is None or known.run_id != run_id:
        if known and run_id in known.former:
            return None
        known = _take_over(connection, root, run_id, records, known)
    if known.event_shift is None and records.events:
        known = _put(connection, root, replace(known, event_shift=last_event(connection, root)))
    return _shift(records, known), known.answer(records)


def get(connection: Connection, root: str) -> TreeWriter | None:
    row = one(connection, select(schema.writers).where(schema.writers.c.root_job_id == root))
    if row is None:
        return None
    values = dict(row._mapping) | {"former": tuple(row.former)}
    return TreeWriter(**{name: values[name] for name in TreeWriter.__dataclass_fields__})


def forget(connection: Connection, root: str) -> None:
    """Delete the record of the tree's writer; the next run to write takes over."""
    write(connection, delete(schema.writers).where(schema.writers.c.root_job_id == root))


def last_event(connection: Connection, root: str) -> int:
    """Return the number of the tree's latest event."""
    query = select(func.max(schema.events.c.seq)).where(schema.events.c.root_job_id == root)
    return scalar(connection, query) or 0


def highest_revision(connection: Connection, root: str) -> int:
    """Return the highest revision of all rows of the tree."""
    tables = (schema.tasks, schema.jobs, schema.rounds)
    highest = (select(func.max(table.c.revision)).where(table.c.root_job_id == root) for table in tables)
    return max(scalar(connection, query) or 0 for query in highest)


def _take_over(
    connection: Connection, root: str, run_id: str, records: Records, before: TreeWriter | None
) -> TreeWriter:
    """Make this run the tree's writer. If its revisions continue the stored ones, keep its numbers; else shift its
    numbers behind the stored ones.
    """
    first, highest = records.revision, highest_revision(connection, root)
    shift = before.shift if before else 0
    anew = first + shift <= highest
    if anew:
        shift = highest + 1 - first
    former = (*before.former, before.run_id)[-REMEMBERED:] if before else ()
    event_shift = None if anew else before.event_shift if before else 0
    return _put(connection, root, TreeWriter(run_id, first, anew, shift, event_shift, former))


def _shift(records: Records, writer: TreeWriter) -> Records:
    by, events = writer.shift, writer.event_shift or 0
    if not by and not events:
        return records
    return records.model_copy(
        update={
            "task": records.task and records.task.model_copy(update={"revision": records.task.revision + by}),
            "jobs": tuple(job.model_copy(update={"revision": job.revision + by}) for job in records.jobs),
            "rounds": tuple(row.model_copy(update={"revision": row.revision + by}) for row in records.rounds),
            "events": tuple(shift_event(event, events) for event in records.events),
        }
    )


def _put(connection: Connection, root: str, writer: TreeWriter) -> TreeWriter:
    row = {"root_job_id": root, **writer.__dict__, "former": list(writer.former)}
    upsert(connection, schema.writers, row)
    return writer
