"""Registered repositories: a name for people, the path of the checkout, its host."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import Engine, delete, select

from activities.store import schema
from activities.store.database import rows_with, upsert
from workflows.model.errors import NotFoundError


@dataclass(frozen=True)
class Repo:
    """A repository that jobs may run against."""

    name: str
    path: str
    host: str
    added_at: float
    github: str = ""
    """Its GitHub name, OWNER/NAME; empty if it is not there, or unknown (ruling L1)."""


def put(engine: Engine, name: str, path: str, host: str, github: str = "") -> Repo:
    """Register a repository, or point an existing name at another checkout."""
    repo = Repo(name, path, host, time.time(), github)
    with engine.begin() as connection:
        upsert(connection, schema.repos, [asdict(repo)])
    return repo


def get(engine: Engine, name: str) -> Repo | None:
    with engine.connect() as connection:
        row = connection.execute(rows_with(schema.repos.c.name), {"name": name}).one_or_none()
    return Repo(**row._mapping) if row else None


def path_of(engine: Engine, name: str) -> Path:
    """Return the path of its checkout, on its host."""
    repo = get(engine, name)
    if repo is None:
        raise NotFoundError(f"the repository {name} is not registered", f"service repo add {name} PATH")
    return Path(repo.path)


def every(engine: Engine) -> list[Repo]:
    with engine.connect() as connection:
        return [Repo(**row._mapping) for row in connection.execute(select(schema.repos).order_by(schema.repos.c.name))]


def remove(engine: Engine, name: str) -> bool:
    with engine.begin() as connection:
        return connection.execute(delete(schema.repos).where(schema.repos.c.name == name)).rowcount > 0
