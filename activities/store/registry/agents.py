"""Registered agents and the repositories they may work on (ruling K3)."""

import time
from dataclasses import dataclass

from sqlalchemy import Engine, bindparam, delete, insert, select

from activities.store import schema
from activities.store.database import insert_new, rows_with
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
    """Labels that its jobs require and prefer of their host (ruling Q4)."""

    def check(self, action: str, repo: str) -> None:
        """Refuse an action that the agent may not do on this repository. Every request to a registered agent passes
        this check.
        """
        name, worker = self.worker.name, self.worker
        if repo not in self.repos:
            raise RefusedError(f"{name} is not allowed on {repo}", f"service agent allow {name} {repo}")
        if action not in worker.capabilities:
            able = ", ".join(worker.capabilities)
            raise RefusedError(f"{name} cannot {action}; it can {able}", f"service agent show {name}")
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
        if connection.execute(select(schema.agents.c.name).where(schema.agents.c.name == worker.name)).first():
            return False
        connection.execute(insert(schema.agents), row)
        insert_new(connection, schema.agent_repos, [{"agent": worker.name, "repo": repo} for repo in repos])
    return True


def get(engine: Engine, name: str) -> Agent | None:
    return next(iter(_read(engine, name)), None)


def every(engine: Engine) -> list[Agent]:
    return _read(engine)


def routable(engine: Engine, repo: str) -> tuple[Worker, ...]:
    """Return the agents allowed on a repository, by name. Preflight checks delegations against them (ruling C6)."""
    with engine.connect() as connection:
        rows = connection.execute(_ROUTABLE, {"repo": repo})
        return tuple(Worker.model_validate(dict(row._mapping)) for row in rows)


def templates(engine: Engine) -> tuple[str, ...]:
    """Return the names of agents with a template, which an ephemeral worker may use (ruling C6)."""
    return tuple(agent.worker.name for agent in _read(engine) if agent.worker.template)


def remove(engine: Engine, name: str) -> bool:
    with engine.begin() as connection:
        connection.execute(delete(schema.agent_repos).where(schema.agent_repos.c.agent == name))
        return connection.execute(delete(schema.agents).where(schema.agents.c.name == name)).rowcount > 0


def allow(engine: Engine, name: str, repo: str) -> None:
    with engine.begin() as connection:
        insert_new(connection, schema.agent_repos, [{"agent": name, "repo": repo}])


def deny(engine: Engine, name: str, repo: str) -> None:
    pair = (schema.agent_repos.c.agent == name) & (schema.agent_repos.c.repo == repo)
    with engine.begin() as connection:
        connection.execute(delete(schema.agent_repos).where(pair))


_AGENTS = select(schema.agents).order_by(schema.agents.c.name)
_ROUTABLE = _AGENTS.join(schema.agent_repos, schema.agent_repos.c.agent == schema.agents.c.name).where(
    schema.agent_repos.c.repo == bindparam("repo")
)
_ALLOWED = select(schema.agent_repos).order_by(schema.agent_repos.c.repo)
_ALLOWED_ONE = rows_with(schema.agent_repos.c.agent).order_by(schema.agent_repos.c.repo)


def _read(engine: Engine, name: str | None = None) -> list[Agent]:
    with engine.connect() as connection:
        if name is None:
            agents, allowed = connection.execute(_AGENTS), connection.execute(_ALLOWED)
        else:
            agents = connection.execute(rows_with(schema.agents.c.name), {"name": name})
            allowed = connection.execute(_ALLOWED_ONE, {"agent": name})
        repos: dict[str, list[str]] = {}
        for pair in allowed:
            repos.setdefault(pair.agent, []).append(pair.repo)
        return [
            Agent(
                Worker.model_validate(dict(row._mapping)),
                tuple(repos.get(row.name, ())),
                row.added_at,
                tuple(row.require),
                tuple(row.prefer),
            )
            for row in agents
        ]
