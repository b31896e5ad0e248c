"""The fleet's table, from which a host is chosen for each attempt, and the record of the choices (ruling Q4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Engine, FromClause, Row, Select, bindparam, exists, func, select, update

from activities.store import schema
from activities.store.database import clock, upsert
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen
from workflows.policy.placement import NO_HOST, Host, Need

ON_ITS_WAY = 2.0
"""The longest time in seconds until a host has an attempt that was placed on it, and reports it in its load."""


@dataclass(frozen=True)
class Listed:
    """A host of the fleet's table."""

    host: Host
    checkout: bool
    """True if it has a checkout of the repository."""
    placed: int
    """The number of all attempts that were ever placed on it: the version of its row, for optimistic locking."""


@dataclass(frozen=True)
class Fleet:
    """The hosts, and the labels that the repository and the agent ask for."""

    hosts: Sequence[Listed]
    remote: bool = False
    require: frozenset[str] = frozenset()
    prefer: frozenset[str] = frozenset()


def fleet(engine: Engine, repo: str, agent: str = "") -> Fleet:
    """Read the table for an attempt on a repository, in two statements."""
    with engine.connect() as connection:
        hosts = [_listed(row) for row in connection.execute(_HOSTS, {"repo": repo})]
        asks = connection.execute(_ASKS, {"repo": repo, "agent": agent}).one_or_none()
    if asks is None:
        return Fleet(hosts)
    require = frozenset(asks.require) | frozenset(asks.agent_require or ())
    prefer = frozenset(asks.prefer) | frozenset(asks.agent_prefer or ())
    return Fleet(hosts, bool(asks.remote), require, prefer)


def _listed(row: Row[Any]) -> Listed:
    seen = HostSeen(row.name, row.seen_at, row.stopped_at, row.held, row.now)
    host = Host(
        seen,
        slots=row.slots,
        load=row.taken + row.coming,
        labels=frozenset(row.labels),
        has_repo=bool(row.checkout or row.known),
        draining_at=row.draining_at,
        lost_at=row.lost_at,
    )
    return Listed(host, bool(row.checkout), row.placed)


def take(engine: Engine, chosen: Listed, job_id: str, attempt: int, need: Need, *, at_any_rate: bool = False) -> bool:
    """Record that an attempt is placed on a host. Return False if another one was placed there meanwhile."""
    table, name = schema.hosts.c, chosen.host.name
    unchanged = (table.name == name) & (table.placed == chosen.placed)
    with engine.begin() as connection:
        counted = update(schema.hosts).where(table.name == name if at_any_rate else unchanged)
        if not connection.execute(counted.values(placed=table.placed + 1)).rowcount and not at_any_rate:
            return False
        at = connection.execute(select(clock())).scalar_one()
        row = {"job_id": job_id, "attempt": attempt, "host": name, "repo": need.repo, "at": at}
        upsert(connection, schema.placements, [row | {"require": sorted(need.require)}])
    return True


def placed_on(engine: Engine, job_id: str, attempt: int) -> str:
    """Return the host that an attempt was placed on; empty if it was not placed."""
    table = schema.placements.c
    with engine.connect() as connection:
        query = select(table.host).where(table.job_id == job_id, table.attempt == attempt)
        return connection.execute(query).scalar() or ""


def hosts_in(engine: Engine, root_job_id: str) -> dict[str, str]:
    """Map each job of a tree to the host on which its attempt began, or else was placed; jobs without one are left
    out.
    """
    job, run, placed = schema.jobs.c, schema.attempts.c, schema.placements.c
    begun = (run.job_id == job.job_id) & (run.attempt == job.attempt)
    put = (placed.job_id == job.job_id) & (placed.attempt == job.attempt)
    tables = schema.jobs.outerjoin(schema.attempts, begun).outerjoin(schema.placements, put)
    query = select(job.job_id, func.coalesce(run.host, placed.host).label("host")).select_from(tables)
    with engine.connect() as connection:
        rows = connection.execute(query.where(job.root_job_id == root_job_id)).all()
    return {row.job_id: row.host for row in rows if row.host}


def host_of(jobs: FromClause = schema.jobs) -> ColumnElement[str]:
    """Select the host of a job's current attempt: where it was placed, else its tree's."""
    table, trees = schema.placements.c, schema.trees.c
    placed = select(table.host).where(table.job_id == jobs.c.job_id, table.attempt == jobs.c.attempt)
    of_tree = select(trees.host).where(trees.root_job_id == jobs.c.root_job_id)
    own, tree = (each.correlate(jobs).scalar_subquery() for each in (placed, of_tree))
    return func.coalesce(own, tree)


def is_unplaced() -> ColumnElement[bool]:
    """Select the jobs that no host can run: their reason says why (ruling Q4)."""
    jobs = schema.jobs.c
    return (jobs.state == JobState.QUEUED.value) & jobs.reason.startswith(NO_HOST)


def _hosts() -> Select[Any]:
    hosts, placements, checkouts = schema.hosts, schema.placements, schema.checkouts
    here = placements.c.host == hosts.c.name
    coming = select(func.count()).where(here, placements.c.at > hosts.c.seen_at - ON_ITS_WAY).scalar_subquery()
    known = exists().where(here, placements.c.repo == bindparam("repo"))
    checkout = exists().where(checkouts.c.host == hosts.c.name, checkouts.c.repo == bindparam("repo"))
    return select(
        hosts, coming.label("coming"), known.label("known"), checkout.label("checkout"), clock().label("now")
    ).order_by(hosts.c.name)


def _asks() -> Select[Any]:
    repos, agents = schema.repos, schema.agents
    of_agent = (agents.c.require.label("agent_require"), agents.c.prefer.label("agent_prefer"))
    tables = repos.outerjoin(agents, agents.c.name == bindparam("agent"))
    return (
        select(repos.c.remote, repos.c.require, repos.c.prefer, *of_agent)
        .select_from(tables)
        .where(repos.c.name == bindparam("repo"))
    )


_HOSTS, _ASKS = _hosts(), _asks()
