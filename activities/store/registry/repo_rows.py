"""Registered repositories: a name for people, a remote, and the path of a checkout on each host that has one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, delete, select

from activities.store import schema
from activities.store.queries import Database, rows, upsert, write
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
    """Its GitHub name, OWNER/NAME; empty if it isn't on GitHub, or the name is unknown (ruling L1)."""
    remote: str = ""
    """The address that every host can fetch it from; empty for a repository of one host."""
    default_branch: str = ""
    refs: str = ""
    checkouts: Mapping[str, str] = field(default_factory=dict)
    """The path of the checkout on each host that has one."""
    require: Sequence[str] = ()
    prefer: Sequence[str] = ()
    """The labels that the host of its jobs must have (`require`), or preferably has (ruling Q4)."""

    def is_on(self, host: str) -> bool:
        """Return whether the host can work on the repository: the host has a checkout, or the repository a remote."""
        return host in self.checkouts or bool(self.remote)

    @property
    def is_mirror(self) -> bool:
        """Return whether the repository's host works on a mirror of the remote, without a checkout."""
        return bool(self.remote) and self.host not in self.checkouts

    @property
    def elsewhere(self) -> str:
        """Return the sentence for people on a host that can't work on the repository."""
        return f"the repository {self.name} is on the host {self.host}, not here"

    def refuse_elsewhere(self, host: str, typed: str = "") -> None:
        """Raise if the host can't work on the repository; the hint is to type the same command on the repository's
        host.
        """
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
        upsert(connection, schema.repos, row)
        if path:
            known = get(connection, name)
            if known is not None and not known.remote:
                write(connection, delete(schema.checkouts).where(table.repo == name, table.host != host))
            upsert(connection, schema.checkouts, {"repo": name, "host": host, "path": path, "added_at": now})
        repo = get(connection, name)
    assert repo is not None
    return repo


def get(store: Database, name: str) -> Repo | None:
    return next(iter(_read(store, schema.repos.c.name == name)), None)


def must_get(engine: Engine, name: str) -> Repo:
    """Return a repository; raise with the command to type if it is not registered."""
    repo = get(engine, name)
    if repo is None:
        raise NotFoundError(f"the repository {name} is not registered", f"service repo add {name} PATH")
    return repo


def every(engine: Engine) -> list[Repo]:
    return _read(engine)


def remove(engine: Engine, name: str) -> bool:
    return write(engine, delete(schema.repos).where(schema.repos.c.name == name)) > 0


def _read(store: Database, *which: ColumnElement[bool]) -> list[Repo]:
    """Return the selected repositories, sorted by name, each with its checkouts, oldest first."""
    repos, checkouts = schema.repos, schema.checkouts
    query = select(repos, checkouts.c.host, checkouts.c.path).outerjoin(checkouts, checkouts.c.repo == repos.c.name)
    query = query.where(*which).order_by(repos.c.name, checkouts.c.added_at, checkouts.c.host)
    return [_repo([*group]) for _, group in groupby(rows(store, query), lambda row: row.name)]


def _repo(joined: Sequence[Row[Any]]) -> Repo:
    row, paths = joined[0], {row.host: row.path for row in joined if row.host is not None}
    host = next(iter(paths), "")
    known = {column.name: row._mapping[column] for column in schema.repos.c}
    known |= {"require": tuple(row.require), "prefer": tuple(row.prefer)}
    return Repo(path=paths.get(host, ""), host=host, checkouts=paths, **known)
