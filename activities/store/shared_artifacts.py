"""Artifacts of all hosts that share a PostgreSQL store (ruling Q2): content by digest, in the database.

Each artifact has a row with the time of its last use, by the database's clock. Its content is in that row, above 1 MiB
also in further rows. A lock of the digest keeps a host from removing what another one stores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, Engine, Insert, delete, func, insert, select, update

from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import queries, schema
from activities.store.artifacts import MARGIN, YOUNG_SECONDS, Artifacts, OldArtifact
from activities.store.queries import clock, one, rows, write
from activities.store.secret_hosts import SecretHosts
from workflows.model.errors import NotFoundError

PART = 1024 * 1024
"""The most bytes of content in one row."""

_TABLE, _PARTS = schema.artifacts, schema.artifact_parts


def artifacts_of(home: Home, settings: Settings, store: Engine) -> Artifacts:
    """Return the artifacts of a home: its own, or with PostgreSQL those that all hosts share."""
    if store.dialect.name != "postgresql":
        return Artifacts(home.artifacts)
    return Artifacts(home.artifacts, SharedArtifacts(store), SecretHosts(home, settings))


@dataclass(frozen=True)
class SharedArtifacts:
    """The artifacts in one PostgreSQL store."""

    engine: Engine

    def put(self, digest: str, content: bytes) -> None:
        """Store content under its digest, or mark it as used now."""
        with self.engine.begin() as connection:
            if len(content) > PART:
                _lock(connection, digest)
                if _touch(connection, digest):
                    return
            write(connection, _upsert(digest, content))
            for number, begin in enumerate(range(PART, len(content), PART), 1):
                part = content[begin : begin + PART]
                write(connection, insert(_PARTS).values(digest=digest, number=number, body=part))

    def get(self, digest: str) -> Iterator[bytes]:
        """Yield the content in parts; raise NotFoundError if it is missing."""
        with self.engine.connect() as connection:
            row = one(connection, select(_TABLE.c.body, _TABLE.c.size).where(_TABLE.c.digest == digest))
            if row is None:
                why = f"the artifact {digest} is neither in this host's home nor in the store"
                raise NotFoundError(why, "service daemon start  (on the host that wrote it: it hands over what it has)")
            if row.body is None:  # of a release with object stores
                why = f"the artifact {digest} is in an object store, which this release does not read"
                raise NotFoundError(why, "service help sizing  (how to bring it into the database)")
            yield row.body
            if row.size > len(row.body):
                yield from _further(connection, digest)

    def old(self, before: float) -> Iterator[OldArtifact]:
        """Yield the artifacts last used before this time."""
        query = select(_TABLE.c.digest, _TABLE.c.size).where(_TABLE.c.used_at < before - MARGIN)
        for row in rows(self.engine, query.order_by(_TABLE.c.digest)):
            yield OldArtifact(f"artifact {row.digest}", row.size, partial(self.discard, row.digest, before))

    def discard(self, digest: str, before: float) -> None:
        """Remove an artifact; raise FileNotFoundError if it was used or removed meanwhile."""
        unused = (_TABLE.c.digest == digest) & (_TABLE.c.used_at < before - MARGIN)
        with self.engine.begin() as connection:
            _lock(connection, digest)
            if not write(connection, delete(_TABLE).where(unused)):
                raise FileNotFoundError(digest)


def _touch(connection: Connection, digest: str) -> bool:
    """Mark an artifact as used now; return False if its content is missing."""
    known = (_TABLE.c.digest == digest) & _TABLE.c.body.is_not(None)
    return write(connection, update(_TABLE).where(known).values(used_at=clock())) == 1


def _upsert(digest: str, content: bytes) -> Insert:
    """Insert a row with the first part of the content. Renew an existing row unless its time is recent and it has
    content.
    """
    new = queries.insert("postgresql", _TABLE).values(
        digest=digest, size=len(content), body=content[:PART], used_at=clock()
    )
    aged = _TABLE.c.used_at < new.excluded.used_at - YOUNG_SECONDS
    renewed = {"used_at": new.excluded.used_at, "body": func.coalesce(_TABLE.c.body, new.excluded.body)}
    return new.on_conflict_do_update(index_elements=["digest"], set_=renewed, where=aged | _TABLE.c.body.is_(None))


def _further(connection: Connection, digest: str) -> Iterator[bytes]:
    query = select(_PARTS.c.body).where(_PARTS.c.digest == digest).order_by(_PARTS.c.number)
    yield from connection.execution_options(yield_per=1).execute(query).scalars()


def _lock(connection: Connection, digest: str) -> None:
    """Let no other host write or remove this artifact until the transaction ends."""
    one(connection, select(func.pg_advisory_xact_lock(int(digest[:15], 16))))
