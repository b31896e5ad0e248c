"""Artifacts of all hosts that share a PostgreSQL store (ruling Q2): content by digest, in the database or as objects.

Each artifact has a row with the time of its last use, by the database's clock. Its content is in that row, above 1 MiB
also in further rows; where `[artifacts].url` is set, it is an object there. A lock of the digest keeps a host from
removing what another one stores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql

from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import schema
from activities.store.artifacts import MARGIN, YOUNG_SECONDS, Artifacts, OldArtifact
from activities.store.database import clock
from activities.store.objects import Objects
from activities.store.secret_hosts import SecretHosts
from workflows.model.errors import NotFoundError

PART = 1024 * 1024
"""The most bytes of content in one row."""

_TABLE, _PARTS = schema.artifacts, schema.artifact_parts


def artifacts_of(home: Home, settings: Settings, store: Engine) -> Artifacts:
    """Return the artifacts of a home: its own, or with PostgreSQL those that all hosts share."""
    if store.dialect.name != "postgresql":
        return Artifacts(home.artifacts)
    return Artifacts(home.artifacts, SharedArtifacts(store, settings.artifacts.url), SecretHosts(home, settings))


@dataclass(frozen=True)
class SharedArtifacts:
    """The artifacts in one PostgreSQL store, and in the object store at `url` if it is set."""

    engine: Engine
    url: str = ""

    def put(self, digest: str, content: bytes) -> None:
        """Store content under its digest, or mark it as used now."""
        if not self.url and len(content) <= PART:
            with self.engine.begin() as connection:
                connection.execute(_upsert(digest, content))
            return
        with self.engine.begin() as connection:
            _lock(connection, digest)
            if self._used(connection, digest):
                return
            connection.execute(_upsert(digest, content, in_row=not self.url))
            if not self.url:
                for number, begin in enumerate(range(PART, len(content), PART), 1):
                    part = content[begin : begin + PART]
                    connection.execute(insert(_PARTS).values(digest=digest, number=number, body=part))
        if self.url:  # after its row, so that a clean-up knows each object; no connection waits for it
            self._objects.put(_name(digest), content)

    def get(self, digest: str) -> Iterator[bytes]:
        """Yield the content in parts; raise NotFoundError if it is missing."""
        with self.engine.connect() as connection:
            row = connection.execute(select(_TABLE.c.body, _TABLE.c.size).where(_TABLE.c.digest == digest)).first()
            if row is not None and row.body is not None:
                yield row.body
                if row.size > len(row.body):
                    yield from _further(connection, digest)
                return
        if row is None:
            why = f"the artifact {digest} is neither in this host's home nor in the store"
            raise NotFoundError(why, "service daemon status --all  (the host that wrote it must have run this release)")
        yield from self._object(digest)

    def old(self, before: float) -> Iterator[OldArtifact]:
        """Yield the artifacts last used before this time."""
        query = select(_TABLE.c.digest, _TABLE.c.size).where(_TABLE.c.used_at < before - MARGIN)
        with self.engine.connect() as connection:
            rows = connection.execute(query.order_by(_TABLE.c.digest)).all()
        for row in rows:
            yield OldArtifact(f"artifact {row.digest}", row.size, partial(self.discard, row.digest, before))

    def discard(self, digest: str, before: float) -> None:
        """Remove an artifact; raise FileNotFoundError if it was used or removed meanwhile. An object goes before its
        row: what is left after a crash is removed the next time, or stored again.
        """
        unused = (_TABLE.c.digest == digest) & (_TABLE.c.used_at < before - MARGIN)
        with self.engine.begin() as connection:
            _lock(connection, digest)
            row = connection.execute(select(_TABLE.c.body.is_(None)).where(unused).with_for_update()).first()
            if row is None:
                raise FileNotFoundError(digest)
            if row[0]:
                self._require_url(digest)
                self._objects.delete(_name(digest))
            connection.execute(delete(_TABLE).where(_TABLE.c.digest == digest))

    def _used(self, connection: Connection, digest: str) -> bool:
        """Mark an artifact as used now; return False if it is missing, also only in the object store."""
        used = update(_TABLE).where(_TABLE.c.digest == digest).values(used_at=clock())
        row = connection.execute(used.returning(_TABLE.c.body.is_(None))).first()
        if row is None:
            return False
        return not row[0] or not self.url or self._objects.has(_name(digest))

    def _object(self, digest: str) -> Iterator[bytes]:
        self._require_url(digest)
        try:
            yield from self._objects.get(_name(digest))
        except FileNotFoundError:
            raise NotFoundError(f"the artifact {digest} is missing in {self.url}", "service doctor") from None

    def _require_url(self, digest: str) -> None:
        if not self.url:
            why = f"the artifact {digest} is in an object store, and this host has no [artifacts].url"
            raise NotFoundError(why, "set [artifacts].url as on the other hosts, then: service daemon start")

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self.url)


def _upsert(digest: str, content: bytes, *, in_row: bool = True) -> postgresql.Insert:
    """Insert a row, by default with the first part of the content; of an existing one, renew the time unless it is
    recent.
    """
    new = postgresql.insert(_TABLE).values(digest=digest, size=len(content), used_at=clock())
    new = new.values(body=content[:PART]) if in_row else new
    aged = _TABLE.c.used_at < new.excluded.used_at - YOUNG_SECONDS
    return new.on_conflict_do_update(index_elements=["digest"], set_={"used_at": new.excluded.used_at}, where=aged)


def _further(connection: Connection, digest: str) -> Iterator[bytes]:
    query = select(_PARTS.c.body).where(_PARTS.c.digest == digest).order_by(_PARTS.c.number)
    yield from connection.execution_options(yield_per=1).execute(query).scalars()


def _lock(connection: Connection, digest: str) -> None:
    """Let no other host write or remove this artifact until the transaction ends."""
    connection.execute(select(func.pg_advisory_xact_lock(int(digest[:15], 16))))


def _name(digest: str) -> str:
    return f"{digest[:2]}/{digest[2:]}"
