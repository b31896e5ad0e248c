"""Registered agents and the repositories they may work on (ruling K3)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, delete, select

from activities.store import schema
from activities.store.queries import insert_new, rows, write
from workflows.contract.models import WRITE_POLICIES, Action
from workflows.model.errors import RefusedError
from workflows.model.workers import Worker


@dataclass(frozen=True)
class Agent:
    """A registered agent: its worker, and the repositories it may work on."""

    worker: Worker
    repos: tuple[str, ...]
    added_at: float
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """The labels that the host of its jobs must have (`require`), or preferably has (ruling Q4)."""

    def check(self, action: str, repo: str) -> None:
        """Refuse an action that the agent may not do on this repository. Every request to a registered agent passes
        this check.
        """
        name, worker = self.worker.name, self.worker
        if repo not in self.repos:
            raise RefusedError(f"{name} is not allowed on {repo}", f"service agent allow {name} {repo}")
        if action not in worker.capabilities:
            able = " or ".join(worker.capabilities)
            raise RefusedError(f"{name} only {worker.abilities}: choose {able}", f"service agent show {name}")
        if action == Action.IMPLEMENT and worker.autonomy_policy not in WRITE_POLICIES:
            raise RefusedError(f"{name} has no write policy", f"service agent show {name}")

    def can(self, action: str, repo: str) -> bool:
        """Return whether `check` accepts the action."""
        try:
            self.check(action, repo)
        except RefusedError:
            return False
        return True


def add(
    engine: Engine,
    worker: Worker,
    repos: tuple[str, ...],
    require: tuple[str, ...] = (),
    prefer: tuple[str, ...] = (),
) -> bool:
    """Register a new agent; return False if the name is taken."""
    row = worker.model_dump(mode="json", exclude={"ephemeral", "template_digest"}) | {"added_at": time.time()}
    row |= {"require": require, "prefer": prefer}
    with engine.begin() as connection:
        if not insert_new(connection, schema.agents, row):
            return False
        insert_new(connection, schema.agent_repos, *({"agent": worker.name, "repo": repo} for repo in repos))
    return True


def get(engine: Engine, name: str) -> Agent | None:
    return next(iter(_read(engine, schema.agents.c.name == name)), None)


def every(engine: Engine) -> list[Agent]:
    return _read(engine)


def routable(engine: Engine, repo: str) -> tuple[Worker, ...]:
    """Return the agents allowed on a repository, by name. Preflight checks delegations against them (ruling C6)."""
    allowed = select(schema.agent_repos.c.agent).where(schema.agent_repos.c.repo == repo)
    return tuple(agent.worker for agent in _read(engine, schema.agents.c.name.in_(allowed)))


def templates(engine: Engine) -> tuple[str, ...]:
    """Return the names of agents with a template, which an ephemeral worker may use (ruling C6)."""
    return tuple(agent.worker.name for agent in _read(engine) if agent.worker.template)


def remove(engine: Engine, name: str) -> bool:
    with engine.begin() as connection:
        write(connection, delete(schema.agent_repos).where(schema.agent_repos.c.agent == name))
        return write(connection, delete(schema.agents).where(schema.agents.c.name == name)) > 0


def allow(engine: Engine, name: str, repo: str) -> None:
    insert_new(engine, schema.agent_repos, {"agent": name, "repo": repo})


def deny(engine: Engine, name: str, repo: str) -> None:
    pair = (schema.agent_repos.c.agent == name) & (schema.agent_repos.c.repo == repo)
    write(engine, delete(schema.agent_repos).where(pair))


def _read(engine: Engine, *which: ColumnElement[bool]) -> list[Agent]:
    """Return the selected agents, sorted by name, each with its repositories."""
    agents, allowed = schema.agents, schema.agent_repos
    query = select(agents, allowed.c.repo).outerjoin(allowed, allowed.c.agent == agents.c.name)
    query = query.where(*which).order_by(agents.c.name, allowed.c.repo)
    return [_agent([*group]) for _, group in groupby(rows(engine, query), lambda row: row.name)]


def _agent(joined: Sequence[Row[Any]]) -> Agent:
    row, repos = joined[0], tuple(row.repo for row in joined if row.repo is not None)
    worker = Worker.model_validate(dict(row._mapping))
    return Agent(worker, repos, row.added_at, tuple(row.require), tuple(row.prefer))
