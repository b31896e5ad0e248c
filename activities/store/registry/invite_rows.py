"""Invitations to join the fleet, by the digest of their token's number: each is used once, within a short time."""

from dataclasses import dataclass

from sqlalchemy import Engine, delete, insert, select, update

from activities.store import schema
from activities.store.queries import clock, now, one, write
from workflows.policy.invitations import LASTS_SECONDS, REMEMBERED_SECONDS


@dataclass(frozen=True)
class Invite:
    """An invitation, as the store knows it."""

    expires_at: float
    used_at: float | None
    used_by: str


def add(engine: Engine, digest: str, host: str) -> None:
    """Record an invitation, and delete old ones."""
    table = schema.invites
    with engine.begin() as connection:
        at = now(connection)
        write(connection, delete(table).where(table.c.expires_at < at - REMEMBERED_SECONDS))
        row = {"digest": digest, "host": host, "made_at": at, "expires_at": at + LASTS_SECONDS}
        write(connection, insert(table).values(row))


def use(engine: Engine, digest: str, by: str) -> bool:
    """Use up an invitation; return False if it is unknown, used or expired."""
    table = schema.invites.c
    usable = (table.digest == digest) & table.used_at.is_(None) & (table.expires_at > clock())
    used = update(schema.invites).where(usable).values(used_at=clock(), used_by=by[:200])
    return write(engine, used) == 1


def get(engine: Engine, digest: str) -> Invite | None:
    table = schema.invites.c
    query = select(table.expires_at, table.used_at, table.used_by).where(table.digest == digest)
    row = one(engine, query)
    return Invite(**row._mapping) if row else None
