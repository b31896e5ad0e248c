"""Claims: an offered attempt belongs to its host, which begins it, or to its tree, which takes it back. Decided once
(ruling B5).
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, Engine, select, update

from activities.store import attempts, schema
from activities.store.attempts import AttemptRow
from activities.store.database import insert_one


@dataclass(frozen=True)
class Offered:
    """One offer of one attempt of a job or a pipeline's stage."""

    job_id: str
    attempt: int
    offer: int = 1

    @property
    def key(self) -> tuple[str, int]:
        """Return the job and attempt."""
        return self.job_id, self.attempt


def begin(engine: Engine, offered: Offered, *, host: str, run_dir: str) -> AttemptRow | None:
    """Claim the offer and open its run. Idempotent. Return None if the tree took the offer back first.

    A tree that was reset may offer a begun attempt again under another number: it gets the run that exists.
    """
    with engine.begin() as connection:
        claim = _settle(connection, offered, begun_at=time.time())
        if claim.begun_at is None or claim.offer > offered.offer:
            return None
        return attempts.open_within(connection, offered.job_id, offered.attempt, host, run_dir, claim.begun_at)


def take_back(engine: Engine, offered: Offered) -> float | None:
    """Take the offer back for good; return the time of its begin if its host was first."""
    with engine.begin() as connection:
        claim = _settle(connection, offered, begun_at=None)
    return float(claim.begun_at) if claim.begun_at is not None else None


class _Settled(NamedTuple):
    offer: int
    begun_at: float | None


def _settle(connection: Connection, offered: Offered, begun_at: float | None) -> _Settled:
    """Decide about an offer. The first decision is final; a later offer of the same attempt has its own."""
    table = schema.claims
    key = (table.c.job_id == offered.job_id) & (table.c.attempt == offered.attempt)
    said = {"offer": offered.offer, "begun_at": begun_at}
    if insert_one(connection, table, {"job_id": offered.job_id, "attempt": offered.attempt, **said}):
        return _Settled(offered.offer, begun_at)
    older = key & (table.c.offer < offered.offer) & table.c.begun_at.is_(None)
    connection.execute(update(table).where(older).values(**said))
    return _Settled(*connection.execute(select(table.c.offer, table.c.begun_at).where(key)).one())
