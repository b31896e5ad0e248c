"""The hosts and their workers: each worker records that it is running, and others read when it was last seen."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from random import random

from sqlalchemy import Engine, case, delete, exists, func, null, or_, select, update

from activities.store import schema
from activities.store.placements import coming, host_of
from activities.store.queries import clock, insert, insert_new, now, one, rows, scalars, upsert, write
from workflows.model.states import JobState
from workflows.policy import placement
from workflows.policy.host_availability import UNSEEN_SECONDS, HostSeen

SEEN = (
    *("version", "slots", "started_at", "seen_at", "stopped_at", "held"),
    *("machine", "key", "labels", "address", "taken", "pool"),
)
"""The columns that a host's worker writes; the others are orders to the host, or written by other hosts."""


@dataclass(frozen=True)
class Cluster:
    """The properties that all hosts of a store share."""

    key: str
    """The fingerprint of the seal key."""
    namespace: str
    oldest_release: str


@dataclass(frozen=True)
class HostRow:
    """A host's row, which its worker and orders to the host write."""

    name: str
    version: str
    slots: int
    started_at: float
    seen_at: float
    stopped_at: float | None
    held: str
    """The reason why the host starts no runs; empty if it starts them."""
    machine: str = ""
    """Identifies the host's home on its machine."""
    key: str = ""
    """The fingerprint of the key it seals with."""
    keys: Sequence[str] = ()
    """Unused: a column of 0.2.0."""
    labels: Sequence[str] = ()
    address: str = ""
    """The URL of the host's bridge for other hosts; empty if the bridge only listens for its own machine."""
    taken: int = 0
    """Number of slots in use."""
    draining_at: float | None = None
    lost_at: float | None = None
    placed: int = 0
    """The number of attempts that were ever placed on it."""
    pool: str = ""
    lot: float = 0.0
    """The host's random place in its pool, by which placement draws it."""
    running: int = 0
    """Number of jobs that run there."""
    now: float = 0.0
    """Time on the store's clock when this was read."""

    @property
    def seen(self) -> HostSeen:
        return HostSeen(self.name, self.seen_at, self.stopped_at, self.held, self.now)


@cache
def release() -> str:
    """Return the version that this process runs, even if another one was installed meanwhile."""
    try:
        return version("delegation-service")
    except PackageNotFoundError:
        return "unreleased"


def see(
    engine: Engine,
    name: str,
    *,
    slots: int,
    started_at: float,
    held: str = "",
    machine: str = "",
    key: str = "",
    labels: Sequence[str] = (),
    address: str = "",
    taken: int = 0,
) -> bool:
    """Record that this host's worker is running, with the reason (`held`) if it starts no runs.

    Return False, and record nothing, if another machine has had the name within the last minute (ruling Q1).
    """
    row = {"name": name, "version": release(), "slots": slots, "started_at": started_at, "held": held, "taken": taken}
    row |= {"machine": machine, "key": key, "labels": list(labels), "address": address}
    table = schema.hosts
    with engine.begin() as connection:
        at, load = now(connection), taken + coming(connection, name)
        host = placement.Host(HostSeen(name, at, held=held, now=at), slots, load, frozenset(labels))
        row |= {"seen_at": at, "stopped_at": None, "pool": host.pool.key, "lot": random()}  # noqa: S311
        seeing = insert(connection.dialect.name, table).values(row)
        gone = or_(table.c.stopped_at.is_not(None), table.c.seen_at < at - UNSEEN_SECONDS)
        own = or_(table.c.machine.in_(("", machine)), gone)
        changes = {name: seeing.excluded[name] for name in SEEN} | {"lost_at": null()}  # it has come back
        return write(connection, seeing.on_conflict_do_update(index_elements=["name"], set_=changes, where=own)) == 1


def stop(engine: Engine, name: str, *, started_at: float) -> None:
    """Record that the worker has stopped, unless another worker has replaced it already."""
    mine = (schema.hosts.c.name == name) & (schema.hosts.c.started_at == started_at)
    write(engine, update(schema.hosts).where(mine).values(stopped_at=clock()))


def sort_out(engine: Engine, *, lost_after: float = 0) -> None:
    """Record hosts as lost that were not seen for `lost_after` seconds (0: none). Stop choosing hosts that take no
    runs, such as dead ones, and choose those again that are back.
    """
    table = schema.hosts.c
    if lost_after:
        late = table.lost_at.is_(None) & (table.seen_at < clock() - lost_after)
        write(engine, update(schema.hosts).where(late).values(lost_at=clock()))
    shut = or_(
        *(column.is_not(None) for column in (table.stopped_at, table.lost_at, table.draining_at)),
        table.held != "",
        table.seen_at < clock() - UNSEEN_SECONDS,
    )
    closed = f"{placement.Room.CLOSED.value}"
    wrong = (shut & ~table.pool.startswith(closed)) | (~shut & table.pool.startswith(closed))
    room = case((shut, closed), else_=f"{placement.Room.FULL.value}")  # the host says soon how full it is
    write(engine, update(schema.hosts).where(wrong).values(pool=room + func.substr(table.pool, 2)))


def lose(engine: Engine, host: HostSeen) -> bool:
    """Record that the host is lost; return False if it was seen meanwhile. Its next sign of life clears that."""
    table = schema.hosts
    unchanged = (table.c.name == host.name) & (table.c.seen_at == host.seen_at)
    lost = func.coalesce(table.c.lost_at, clock())
    return write(engine, update(table).where(unchanged).values(lost_at=lost)) == 1


def drain(engine: Engine, name: str, *, undo: bool = False) -> None:
    """Record that the host takes no new offers, or takes them again."""
    table = schema.hosts
    since = null() if undo else func.coalesce(table.c.draining_at, clock())
    write(engine, update(table).where(table.c.name == name).values(draining_at=since))


def free(engine: Engine, name: str) -> None:
    """Release the host's name from the machine recorded with it, for a store copied from another home, or a home that
    has moved.
    """
    write(engine, update(schema.hosts).where(schema.hosts.c.name == name).values(machine=""))


def get(engine: Engine, name: str) -> HostRow | None:
    """Return one host, without the number of its running jobs."""
    query = select(schema.hosts, clock().label("now")).where(schema.hosts.c.name == name)
    row = one(engine, query)
    return HostRow(**row._mapping) if row else None


def remove(engine: Engine, host: HostSeen) -> bool:
    """Delete a host and its checkouts from the store, unless it was seen meanwhile."""
    table = schema.hosts.c
    with engine.begin() as connection:
        unchanged = (table.name == host.name) & (table.seen_at == host.seen_at)
        if write(connection, delete(schema.hosts).where(unchanged)) != 1:
            return False
        write(connection, delete(schema.checkouts).where(schema.checkouts.c.host == host.name))
        return True


def open_jobs(engine: Engine, name: str) -> list[str]:
    """Return the jobs that have not ended and are placed on the host, or run there."""
    jobs, attempts = schema.jobs, schema.attempts
    there = (attempts.c.job_id == jobs.c.job_id) & (attempts.c.host == name) & attempts.c.ended_at.is_(None)
    query = select(jobs.c.job_id).where(
        or_(host_of() == name, exists().where(there)), jobs.c.state.in_((JobState.QUEUED, JobState.RUNNING))
    )
    return list(scalars(engine, query.order_by(jobs.c.queued_at, jobs.c.job_id)))


def every(engine: Engine) -> list[HostRow]:
    """Return all hosts that were ever seen, by name."""
    table, jobs = schema.hosts, schema.jobs
    placed = select(host_of().label("host")).where(jobs.c.state == JobState.RUNNING).subquery()
    running = select(placed.c.host, func.count().label("running")).group_by(placed.c.host).subquery()
    query = select(table, func.coalesce(running.c.running, 0).label("running"), clock().label("now"))
    query = query.outerjoin(running, running.c.host == table.c.name).order_by(table.c.name)
    return [HostRow(**row._mapping) for row in rows(engine, query)]


def of_trees(engine: Engine, roots: set[str]) -> dict[str, HostSeen]:
    """Return the host of each tree, and when its worker was last seen."""
    trees, table = schema.trees, schema.hosts
    query = select(trees.c.root_job_id, trees.c.host, table.c.seen_at, table.c.stopped_at, table.c.held, clock())
    query = query.outerjoin(table, table.c.name == trees.c.host).where(trees.c.root_job_id.in_(roots))
    return {
        root: HostSeen(host, seen, stopped, held or "", time)
        for root, host, seen, stopped, held, time in rows(engine, query)
    }


def of_jobs(engine: Engine, job_ids: Collection[str]) -> dict[str, HostSeen]:
    """Return the host of each job's current attempt, and when its worker was last seen."""
    jobs, table = schema.jobs.c, schema.hosts
    of_host = (table.c.seen_at, table.c.stopped_at, table.c.held, clock().label("now"))
    query = select(jobs.job_id, host_of().label("host"), *of_host)
    query = query.select_from(schema.jobs.outerjoin(table, table.c.name == host_of())).where(jobs.job_id.in_(job_ids))
    return {
        row.job_id: HostSeen(row.host, row.seen_at, row.stopped_at, row.held or "", row.now)
        for row in rows(engine, query)
        if row.host
    }


def cluster(engine: Engine) -> Cluster | None:
    """Return the shared properties; None before the first worker."""
    table = schema.cluster
    row = one(engine, select(table.c.key, table.c.namespace, table.c.oldest_release))
    return Cluster(**row._mapping) if row else None


def form(engine: Engine, wanted: Cluster, *, replace: bool = False) -> Cluster:
    """Write the shared properties if the store has none, or in any case with `replace`. Return the stored ones."""
    row = {"id": 1, **asdict(wanted)}
    if replace:
        upsert(engine, schema.cluster, row)
    else:
        insert_new(engine, schema.cluster, row)
    known = cluster(engine)
    assert known is not None
    return known
