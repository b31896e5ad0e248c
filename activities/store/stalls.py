"""What stands still, as the workers found it last. A store without stalls is not written to."""

from collections.abc import Sequence

from sqlalchemy import Engine, delete, select

from activities.store import schema
from activities.store.database import insert_new
from workflows.policy.stalls import Stall, StallKind

_TABLE = schema.stalls


def replace(engine: Engine, kind: StallKind, host: str, found: Sequence[Stall]) -> None:
    """Replace the stalls of a kind that this host found before; those that last keep their time."""
    mine = (_TABLE.c.kind == kind.value) & (_TABLE.c.host == host)
    with engine.begin() as connection:
        since = {row.what: row.since for row in connection.execute(select(_TABLE).where(mine))}
        connection.execute(delete(_TABLE).where(mine))
        rows = [{**vars(stall), "kind": kind.value, "since": since.get(stall.what, stall.since)} for stall in found]
        insert_new(connection, _TABLE, rows)


def every(engine: Engine) -> list[Stall]:
    """Return every stall, oldest first."""
    with engine.connect() as connection:
        rows = connection.execute(select(_TABLE).order_by(_TABLE.c.since, _TABLE.c.what)).all()
    return [Stall(StallKind(row.kind), row.what, row.attempt, row.since, row.host) for row in rows]
