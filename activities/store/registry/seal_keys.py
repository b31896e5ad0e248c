"""The seal keys since the first rotation: offered to all hosts, in use, no longer in use, or removed (ruling Q10)."""

from dataclasses import dataclass

from sqlalchemy import Engine, delete, select, update

from activities.store import schema
from activities.store.queries import clock, insert_new, now, rows, scalar, write


@dataclass(frozen=True)
class KnownKey:
    """A key by its fingerprint, and its course."""

    fingerprint: str
    wrapped: str
    """The key, encrypted with the one that sealed when it was offered; empty once it seals."""
    under: str
    """The fingerprint of that one."""
    offered_at: float
    seals_since: float | None = None
    left_at: float | None = None
    """Time since when no host seals with it any more."""
    removed_at: float | None = None


def every(engine: Engine) -> list[KnownKey]:
    """Return all keys, in the order in which they were offered; none if the first key still seals."""
    query = select(schema.seal_keys).order_by(schema.seal_keys.c.offered_at, schema.seal_keys.c.seals_since)
    return [KnownKey(**row._mapping) for row in rows(engine, query)]


def sealing(keys: list[KnownKey]) -> KnownKey | None:
    """Return the key that all hosts are to seal with."""
    return max((key for key in keys if key.seals_since), key=lambda key: key.seals_since or 0.0, default=None)


def offered(keys: list[KnownKey]) -> KnownKey | None:
    """Return the key that not all hosts have yet."""
    return next((key for key in keys if not key.seals_since), None)


def offer(engine: Engine, fingerprint: str, wrapped: str, under: str) -> None:
    """Record a new key, and the present one if no key was ever turned. One that another host offers stays."""
    with engine.begin() as connection:
        at = now(connection)
        present = {"fingerprint": under, "wrapped": "", "under": "", "offered_at": at, "seals_since": at}
        new = {"fingerprint": fingerprint, "wrapped": wrapped, "under": under, "offered_at": at, "seals_since": None}
        table = schema.seal_keys
        insert_new(connection, table, present)
        if scalar(connection, select(table.c.fingerprint).where(table.c.seals_since.is_(None))) is None:
            insert_new(connection, table, new)


def rotate(engine: Engine, fingerprint: str) -> None:
    """Have all hosts seal with this key."""
    table = schema.seal_keys
    with engine.begin() as connection:
        mine = update(table).where(table.c.fingerprint == fingerprint, table.c.seals_since.is_(None))
        write(connection, mine.values(seals_since=clock(), wrapped=""))
        write(connection, update(schema.cluster).values(key=fingerprint))


def leave(engine: Engine, fingerprint: str) -> None:
    """Record that no host seals with this key any more."""
    _set(engine, fingerprint, "left_at")


def remove(engine: Engine, fingerprint: str) -> None:
    """Have all hosts remove this key."""
    _set(engine, fingerprint, "removed_at")


def forget(engine: Engine) -> None:
    """Forget all keys: a new one has replaced them."""
    write(engine, delete(schema.seal_keys))


def _set(engine: Engine, fingerprint: str, column: str) -> None:
    table = schema.seal_keys
    mine = update(table).where(table.c.fingerprint == fingerprint, table.c[column].is_(None))
    write(engine, mine.values({column: clock()}))
