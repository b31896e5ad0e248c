"""Claims of attempts: whether the host or the tree has an offered attempt, and the order to stop one that has begun.

Either the host begins an offered attempt, or the tree takes it back: the first decides (ruling B5).
"""

import logging
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, Engine, select, update

from activities.store import schema
from activities.store.attempt_rows import AttemptRow, Offered, is_of, open_or_get
from activities.store.queries import Database, clock, insert_new, now, rows, transaction, write
from workflows.model.orders import StopReason

log = logging.getLogger(__name__)


def begin(engine: Engine, offered: Offered, *, host: str, run_dir: str) -> AttemptRow | None:
    """Claim the offer and open its run. Idempotent. Return None if the tree took the offer back first.

    A tree that was reset may offer a begun attempt again under another number: it gets the run that exists.
    """
    with engine.begin() as connection:
        claim = settle(connection, offered, begun_at=now(connection))
        if claim.begun_at is None or claim.offer > offered.offer:
            return None
        return open_or_get(connection, offered.job_id, offered.attempt, host, run_dir, claim.begun_at)


def take_back(engine: Engine, offered: Offered) -> float | None:
    """Withdraw the offer permanently. If the host had begun the attempt, return when it began: the attempt keeps
    running.
    """
    return settle(engine, offered, begun_at=None).begun_at


def call_off(engine: Engine, offered: Offered, why: StopReason) -> float | None:
    """Withdraw the offer permanently. If the host had begun the attempt, order the host to stop it, and return when it
    began.
    """
    with engine.begin() as connection:
        begun_at = settle(connection, offered, begun_at=None).begun_at
        if begun_at is not None:
            order_stop(connection, offered, why)
    return begun_at


def order_stop(connection: Connection, offered: Offered, why: StopReason) -> None:
    """Order the host of a begun attempt to stop it. No-op for an attempt that no host has begun."""
    begun = is_of(schema.claims, offered) & schema.claims.c.begun_at.is_not(None)
    if write(connection, update(schema.claims).where(begun).values(stop_at=clock())):
        log.info("%s, attempt %d, is ordered to stop: %s", offered.job_id, offered.attempt, why)


def ordered_to_stop(engine: Engine, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return which of these attempts, by job and number, their trees have ordered to stop."""
    table = schema.claims.c
    query = select(table.job_id, table.attempt).where(
        table.stop_at.is_not(None), table.job_id.in_({job_id for job_id, _ in keys})
    )
    at_once = engine.execution_options(isolation_level="AUTOCOMMIT")  # a single statement, asked again and again
    return {(row.job_id, row.attempt) for row in rows(at_once, query)}.intersection(keys)


class Settled(NamedTuple):
    offer: int
    begun_at: float | None


def settle(store: Database, offered: Offered, begun_at: float | None) -> Settled:
    """Store a decision about an offer: begun at this time, or taken back.

    The first decision is final; a later offer of the attempt gets its own.
    """
    table, key = schema.claims, is_of(schema.claims, offered)
    decision = {"offer": offered.offer, "begun_at": begun_at}
    older = key & (table.c.offer < offered.offer) & table.c.begun_at.is_(None)
    with transaction(store) as connection:
        if insert_new(connection, table, {"job_id": offered.job_id, "attempt": offered.attempt, **decision}):
            return Settled(offered.offer, begun_at)
        write(connection, update(table).where(older).values(**decision))
        [(offer, begun_at)] = rows(connection, select(table.c.offer, table.c.begun_at).where(key))
    return Settled(offer, begun_at)
