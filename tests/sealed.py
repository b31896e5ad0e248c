"""Sealing the rows of attempts that a test wrote into a store by hand, as the host that ran them would have."""

from typing import Any

from sqlalchemy import Engine, select, update

from activities.sealing import attempt_seals, seal_key
from activities.store import schema
from activities.store.database import home_of


def seal(store: Engine) -> None:
    """Seal the end of each attempt as it stands in the store."""
    table = schema.attempts
    with store.begin() as connection:
        key = seal_key.ensure(home_of(connection))
        for row in connection.execute(select(table)).all():
            parts: dict[str, Any] = {part: row._mapping[part] for part in attempt_seals.PARTS}
            mine = (table.c.job_id == row.job_id) & (table.c.attempt == row.attempt)
            seals = attempt_seals.seal_parts(key, row.job_id, row.attempt, parts)
            connection.execute(update(table).where(mine).values(seals=seals))
