"""The fleet's table, from which a host is chosen for each attempt, and the record of the choices (ruling Q4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import random
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Double,
    Engine,
    FromClause,
    Integer,
    Row,
    Select,
    Text,
    bindparam,
    cast,
    exists,
    func,
    literal,
    select,
    text,
    union_all,
    update,
)

from activities.store import schema
from activities.store.queries import clock, now, one, rows, scalar, scalars, upsert, write
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen
from workflows.policy.placement import HANDFUL, NO_HOST, Host, Need, Pool, pools_for

ON_ITS_WAY = 2.0
"""The longest time in seconds from a placement until the host reports the attempt in its load."""


@dataclass(frozen=True)
class Listed:
    """A host of the fleet's table."""

    host: Host
    placed: int
    """The number of all attempts that were ever placed on it: the version of its row, for optimistic locking."""


@dataclass(frozen=True)
class Asks:
    """The labels that a repository and an agent ask for, and the hosts that have the repository."""

    remote: bool = False
    require: frozenset[str] = frozenset()
    prefer: frozenset[str] = frozenset()
    checkouts: frozenset[str] = frozenset()
    """The hosts with a checkout, of a repository without a remote."""


@dataclass(frozen=True)
class Drawn:
    """A few hosts drawn from the fleet, and the labels of all others."""

    hosts: Sequence[Listed]
    others: frozenset[str]

    @property
    def whole(self) -> bool:
        """Return whether the drawn hosts are all hosts that could run the attempt."""
        return len(self.hosts) < HANDFUL


def asks(engine: Engine, repo: str, agent: str = "") -> Asks:
    """Return what a repository and an agent ask of a host."""
    repos, agents, checkouts = schema.repos, schema.agents, schema.checkouts.c
    of_agent = (agents.c.require.label("agent_require"), agents.c.prefer.label("agent_prefer"))
    query = select(repos.c.remote, repos.c.require, repos.c.prefer, *of_agent).where(repos.c.name == repo)
    row = one(engine, query.outerjoin(agents, agents.c.name == agent))
    if row is None:
        return Asks()
    known = () if row.remote else scalars(engine, select(checkouts.host).where(checkouts.repo == repo))
    require = frozenset(row.require) | frozenset(row.agent_require or ())
    prefer = frozenset(row.prefer) | frozenset(row.agent_prefer or ())
    return Asks(bool(row.remote), require, prefer, frozenset(known))


def draw(engine: Engine, need: Need, seed: str) -> Drawn:
    """Draw a few hosts at random from the pools that can run the attempt, the best pools first, and add the hosts that
    the attempt names.
    """
    with engine.connect() as connection:
        pools = [Pool.read(key) for key in connection.scalars(_POOLS)]
        ranked = pools_for(need, pools, seed)
        keys = [(rank, pool.key) for rank, alike in enumerate(ranked) for pool in alike]
        values: dict[str, Any] = {"repo": need.repo, "named": sorted(need.named_hosts), "start": random()}  # noqa: S311
        for number, (rank, key) in enumerate(keys):
            values |= {f"rank_{number}": rank, f"pool_{number}": key}
        hosts = {row.name: _listed_host(row) for row in connection.execute(_drawing(len(keys)), values)}
    return Drawn([*hosts.values()], frozenset().union(*(pool.labels for pool in pools)))


def every(engine: Engine) -> list[Host]:
    """Read the whole table, which grows with the fleet."""
    return [_listed_host(row).host for row in rows(engine, _hosts(schema.hosts, "").order_by(schema.hosts.c.name))]


def _listed_host(row: Row[Any]) -> Listed:
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
    return Listed(host, row.placed)


def take(engine: Engine, chosen: Listed, job_id: str, attempt: int, need: Need, *, at_any_rate: bool = False) -> bool:
    """Record that an attempt is placed on a host. Return False if another attempt was placed there meanwhile."""
    table, name = schema.hosts.c, chosen.host.name
    unchanged = (table.name == name) & (table.placed == chosen.placed)
    with engine.begin() as connection:
        counted = update(schema.hosts).where(table.name == name if at_any_rate else unchanged)
        pool = replace(chosen.host, load=chosen.host.load + 1).pool.key
        counted = counted.values(placed=table.placed + 1, pool=pool, lot=random())  # noqa: S311
        if not write(connection, counted) and not at_any_rate:
            return False
        row = {"job_id": job_id, "attempt": attempt, "host": name, "repo": need.repo, "at": now(connection)}
        upsert(connection, schema.placements, row | {"require": sorted(need.require)})
    return True


def coming(connection: Connection, host: str) -> int:
    """Count the attempts placed on a host so recently that its reported load doesn't include them."""
    table = schema.placements.c
    query = select(func.count()).where(table.host == host, table.at > clock() - ON_ITS_WAY)
    return scalar(connection, query) or 0


def placed_on(engine: Engine, job_id: str, attempt: int) -> str:
    """Return the host that an attempt was placed on; empty if it was not placed."""
    table = schema.placements.c
    query = select(table.host).where(table.job_id == job_id, table.attempt == attempt)
    return scalar(engine, query) or ""


def hosts_in(engine: Engine, root_job_id: str) -> dict[str, str]:
    """Map each job of a tree to the host on which its attempt began, or else was placed. Jobs without a host are left
    out.
    """
    job, run, placed = schema.jobs.c, schema.attempts.c, schema.placements.c
    begun = (run.job_id == job.job_id) & (run.attempt == job.attempt)
    put = (placed.job_id == job.job_id) & (placed.attempt == job.attempt)
    tables = schema.jobs.outerjoin(schema.attempts, begun).outerjoin(schema.placements, put)
    query = select(job.job_id, func.coalesce(run.host, placed.host).label("host")).select_from(tables)
    return {row.job_id: row.host for row in rows(engine, query.where(job.root_job_id == root_job_id)) if row.host}


def host_of(jobs: FromClause = schema.jobs) -> ColumnElement[str]:
    """Select the host of a job's current attempt: where it was placed, else its tree's."""
    table, trees = schema.placements.c, schema.trees.c
    placed = select(table.host).where(table.job_id == jobs.c.job_id, table.attempt == jobs.c.attempt)
    of_tree = select(trees.host).where(trees.root_job_id == jobs.c.root_job_id)
    own, tree = (query.correlate(jobs).scalar_subquery() for query in (placed, of_tree))
    return func.coalesce(own, tree)


def is_unplaced() -> ColumnElement[bool]:
    """Select the jobs that no host can run: their reason says why (ruling Q4)."""
    jobs = schema.jobs.c
    return (jobs.state == JobState.QUEUED.value) & jobs.reason.startswith(NO_HOST)


def _hosts(hosts: FromClause, repo: str | BindParameter[str]) -> Select[Any]:
    """Select hosts with the values that a placement on a repository compares."""
    placements, checkouts = schema.placements, schema.checkouts
    here = placements.c.host == hosts.c.name
    coming = select(func.count()).where(here, placements.c.at > hosts.c.seen_at - ON_ITS_WAY).scalar_subquery()
    known = exists().where(here, placements.c.repo == repo)
    checkout = exists().where(checkouts.c.host == hosts.c.name, checkouts.c.repo == repo)
    return select(hosts, coming.label("coming"), known.label("known"), checkout.label("checkout"), clock().label("now"))


@cache
def _drawing(pools: int) -> Select[Any]:
    """Build the statement that draws hosts from this number of pools. A draw begins at a random place in a pool, and
    wraps around.

    Each part reads only a few entries of the index `hosts_by_pool`, whatever the size of the fleet. Cached: building it
    takes much longer than executing it.
    """
    hosts = schema.hosts
    start: BindParameter[float] = bindparam("start", type_=Double())
    named = select(hosts, literal(-1).label("rank"), hosts.c.pool.label("turn"))
    parts = [named.where(hosts.c.name.in_(bindparam("named", expanding=True))).order_by(hosts.c.pool).limit(HANDFUL)]
    for number in range(pools):
        of_pool = hosts.c.pool == bindparam(f"pool_{number}", type_=Text())
        rank = cast(bindparam(f"rank_{number}"), Integer)
        for turn, lots in (("1", hosts.c.lot >= start), ("2", hosts.c.lot < start)):
            part = select(hosts, rank, cast(literal(turn), Text)).where(of_pool, lots)
            parts.append(part.order_by(hosts.c.lot).limit(HANDFUL))
    drawn = union_all(*(select(part.subquery()) for part in parts)).subquery()
    best = select(drawn).order_by(drawn.c.rank, drawn.c.turn, drawn.c.lot).limit(HANDFUL)
    return _hosts(best.subquery(), bindparam("repo"))


_POOLS = text("""
    WITH RECURSIVE pools(pool) AS (
        SELECT min(pool) FROM hosts
        UNION ALL
        SELECT (SELECT min(hosts.pool) FROM hosts WHERE hosts.pool > pools.pool) FROM pools WHERE pools.pool IS NOT NULL
    )
    SELECT pool FROM pools WHERE pool IS NOT NULL
""")
"""Selects the pools by skipping from one to the next in the index: `DISTINCT` would read all hosts."""
