"""Registered repositories: a name for people, a remote, and the path of a checkout on each host that has one."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import Connection, Engine, Row, bindparam, delete, select

from activities.store import schema
from activities.store.database import upsert
from workflows.model.errors import NotFoundError, RefusedError


@dataclass(frozen=True)
class Remote:
    """The address that every host fetches a repository from (ruling Q3)."""

    remote: str
    default_branch: str
    refs: str
    """The namespace in which the hub accepts the service's work."""


@dataclass(frozen=True)
class Repo:
    """A repository that jobs may run against."""

    name: str
    path: str
    """The checkout that was registered first; empty if the repository is known by its remote only."""
    host: str
    """The host of that checkout."""
    added_at: float
    github: str = ""
    """Its GitHub name, OWNER/NAME; empty if it is not there, or unknown (ruling L1)."""
    remote: str = ""
    """The address that every host can fetch it from; empty for a repository of one host."""
    default_branch: str = ""
    refs: str = ""
    checkouts: Mapping[str, str] = field(default_factory=dict)
    """The path of the checkout on each host that has one."""
    require: Sequence[str] = ()
    prefer: Sequence[str] = ()
    """Labels that its jobs require and prefer of their host (ruling Q4)."""

    def is_on(self, host: str) -> bool:
        """Return whether the host can work on it: it has a checkout, or there is a remote."""
        return host in self.checkouts or bool(self.remote)

    @property
    def is_mirror(self) -> bool:
        """Return whether its host works on a mirror of the remote, without a checkout."""
        return bool(self.remote) and self.host not in self.checkouts

    @property
    def elsewhere(self) -> str:
        """Return the sentence for people on a host that can't work on it."""
        return f"the repository {self.name} is on the host {self.host}, not here"

    def refuse_elsewhere(self, host: str, typed: str = "") -> None:
        """Raise if the host can't work on it; the hint is what was typed, but on its host."""
        if not self.is_on(host):
            raise RefusedError(self.elsewhere, f"ssh {self.host} {typed}".rstrip())


def put(
    engine: Engine,
    name: str,
    path: str,
    host: str,
    github: str = "",
    remote: Remote | None = None,
    *,
    require: Sequence[str] | None = None,
    prefer: Sequence[str] | None = None,
) -> Repo:
    """Register a repository, or change its registration.

    Without a path, only the rest changes; with `remote` or labels left out, these stay. A repository without a remote
    has one checkout: the latest.
    """
    now, table = time.time(), schema.checkouts.c
    row = {"name": name, "github": github, "added_at": now} | (asdict(remote) if remote else {})
    row |= {key: list(labels) for key, labels in (("require", require), ("prefer", prefer)) if labels is not None}
    with engine.begin() as connection:
        upsert(connection, schema.repos, [row])
        if path:
            known = _one(connection, name)
            if known is not None and not known.remote:
                connection.execute(delete(schema.checkouts).where(table.repo == name, table.host != host))
            upsert(connection, schema.checkouts, [{"repo": name, "host": host, "path": path, "added_at": now}])
        repo = _one(connection, name)
    assert repo is not None
    return repo


def get(engine: Engine, name: str) -> Repo | None:
    with engine.connect() as connection:
        return _one(connection, name)


def registered(engine: Engine, name: str) -> Repo:
    """Return a repository; raise with the command to type if it is not registered."""
    repo = get(engine, name)
    if repo is None:
        raise NotFoundError(f"the repository {name} is not registered", f"service repo add {name} PATH")
    return repo


def every(engine: Engine) -> list[Repo]:
    with engine.connect() as connection:
        checkouts: dict[str, list[Row[tuple[object, ...]]]] = {}
        for row in connection.execute(_CHECKOUTS):
            checkouts.setdefault(row.repo, []).append(row)
        rows = connection.execute(select(schema.repos).order_by(schema.repos.c.name))
        return [_repo(row, checkouts.get(row.name, ())) for row in rows]


def remove(engine: Engine, name: str) -> bool:
    with engine.begin() as connection:
        return connection.execute(delete(schema.repos).where(schema.repos.c.name == name)).rowcount > 0


def _one(connection: Connection, name: str) -> Repo | None:
    rows = connection.execute(_WITH_CHECKOUTS, {"name": name}).all()
    return _repo(rows[0], [row for row in rows if row.host is not None]) if rows else None


def _repo(row: Row[tuple[object, ...]], checkouts: Iterable[Row[tuple[object, ...]]]) -> Repo:
    paths: dict[str, str] = {each.host: each.path for each in checkouts}
    host = next(iter(paths), "")
    known = {column.name: row._mapping[column] for column in schema.repos.c} | {
        "require": tuple(row.require),
        "prefer": tuple(row.prefer),
    }
    return Repo(path=paths.get(host, ""), host=host, checkouts=paths, **known)


_IN_ORDER = (schema.checkouts.c.added_at, schema.checkouts.c.host)
_CHECKOUTS = select(schema.checkouts).order_by(*_IN_ORDER)
_WITH_CHECKOUTS = (
    select(schema.repos, schema.checkouts.c.host, schema.checkouts.c.path)
    .outerjoin(schema.checkouts, schema.checkouts.c.repo == schema.repos.c.name)
    .where(schema.repos.c.name == bindparam("name"))
    .order_by(*_IN_ORDER)
)
