"""People's tokens where hosts share a store: names, scopes and digests, for the bridges of all hosts (ruling Q10)."""

from dataclasses import asdict, dataclass

from sqlalchemy import Engine, delete, select

from activities.store import schema
from activities.store.queries import insert_new, rows, write


@dataclass(frozen=True)
class StoredToken:
    """A token, by the digest of what its holder sends."""

    name: str
    scope: str
    digest: str
    made_at: float


def add(engine: Engine, token: StoredToken) -> bool:
    """Store a token; return False if a token with its name or digest exists."""
    return insert_new(engine, schema.tokens, asdict(token)) == 1


def remove(engine: Engine, name: str) -> bool:
    """Remove a token; return False if no token has that name."""
    return write(engine, delete(schema.tokens).where(schema.tokens.c.name == name)) == 1


def every(engine: Engine) -> list[StoredToken]:
    """Return all tokens by name."""
    return [StoredToken(**row._mapping) for row in rows(engine, select(schema.tokens).order_by(schema.tokens.c.name))]
