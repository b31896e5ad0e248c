"""Keys of calls that start something (ruling J9): reserved with the id of what is to be started, before it is.

Only their digests are kept: a key is the caller's own, and may say something that is nobody else's (ruling N7).
"""

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Engine, delete, select, update

from activities.store import schema
from activities.store.database import insert_new

KEPT_SECONDS = 7 * 86_400.0
"""How long a key is remembered."""


@dataclass(frozen=True)
class Reservation:
    """A key, the call it was first sent with, and what that call starts."""

    key: str
    """Its digest."""
    digest: str
    subject: str
    reserved_at: float
    answer: dict[str, Any] | None


def kept_as(key: str) -> str:
    """The digest under which a key is stored."""
    return sha256(key.encode()).hexdigest()


def reserve(engine: Engine, key: str, digest: str, subject: str) -> Reservation:
    """The reservation of a key: the one that is there, or a new one."""
    now, table, key = time.time(), schema.idempotency, kept_as(key)
    row = {"key": key, "digest": digest, "subject": subject, "reserved_at": now, "answer": None}
    with engine.begin() as connection:
        connection.execute(delete(table).where(table.c.reserved_at < now - KEPT_SECONDS))
        insert_new(connection, table, [row])
        found = connection.execute(select(table).where(table.c.key == key)).one()
    return Reservation(**found._mapping)


def settle(engine: Engine, key: str, answer: dict[str, Any]) -> None:
    """Keep what the call was answered; the first answer stands."""
    open_ = (schema.idempotency.c.key == kept_as(key)) & schema.idempotency.c.answer.is_(None)
    with engine.begin() as connection:
        connection.execute(update(schema.idempotency).where(open_).values(answer=answer))


def release(engine: Engine, key: str) -> None:
    """Forget a key whose call was refused: nothing was started, and it may be sent again put right."""
    open_ = (schema.idempotency.c.key == kept_as(key)) & schema.idempotency.c.answer.is_(None)
    with engine.begin() as connection:
        connection.execute(delete(schema.idempotency).where(open_))
