"""Idempotency keys of calls that start something (ruling J9): reserved, with the id to be started, before the start.

Only their digests are stored: a key belongs to the caller, and may contain private text (ruling N7).
"""

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Engine, delete, select, update

from activities.store import schema
from activities.store.queries import insert_new, rows, write

KEPT_SECONDS = 7 * 86_400.0
"""Retention of a key."""


@dataclass(frozen=True)
class Reservation:
    """A key, the digest of the call it was first sent with, and the id of what that call starts."""

    key: str
    """The digest of the key."""
    digest: str
    subject: str
    reserved_at: float
    answer: dict[str, Any] | None


def kept_as(key: str) -> str:
    """Return the digest under which an idempotency key is stored."""
    return sha256(key.encode()).hexdigest()


def reserve(engine: Engine, key: str, digest: str, subject: str) -> Reservation:
    """Return the stored reservation of a key, or make one."""
    now, table, key = time.time(), schema.idempotency, kept_as(key)
    row = {"key": key, "digest": digest, "subject": subject, "reserved_at": now, "answer": None}
    with engine.begin() as connection:
        write(connection, delete(table).where(table.c.reserved_at < now - KEPT_SECONDS))
        insert_new(connection, table, row)
        [reserved] = rows(connection, select(table).where(table.c.key == key))
    return Reservation(**reserved._mapping)


def settle(engine: Engine, key: str, answer: dict[str, Any]) -> None:
    """Save the answer of the call; the first answer is final."""
    open_ = (schema.idempotency.c.key == kept_as(key)) & schema.idempotency.c.answer.is_(None)
    write(engine, update(schema.idempotency).where(open_).values(answer=answer))


def release(engine: Engine, key: str) -> None:
    """Delete the key of a refused call, so that the caller can use the key again for a corrected call."""
    open_ = (schema.idempotency.c.key == kept_as(key)) & schema.idempotency.c.answer.is_(None)
    write(engine, delete(schema.idempotency).where(open_))
