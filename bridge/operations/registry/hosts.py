"""One of the hosts that share a store: its details, its removal, and draining it (rulings Q1, Q8)."""

from dataclasses import asdict, dataclass

from activities.store import moves
from activities.store.registry import hosts as stored
from activities.store.registry import repos as stored_repos
from bridge.operations.jobs import hosts
from bridge.operations.jobs.hosts import Host
from bridge.operations.service import Service
from workflows.model.errors import Commands, NotFoundError, RefusedError, with_nearest

SHOWN = 3
"""Jobs and repositories that an error names."""


@dataclass(frozen=True)
class HostDetail(Host):
    """A host, with its checkouts and its open jobs."""

    checkouts: tuple[str, ...] = ()
    """The repositories that have a checkout there."""
    open_jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Begun:
    """A job that a host is working on."""

    job_id: str
    repo: str
    seconds: float
    """The time since its host began it."""


@dataclass(frozen=True)
class Drained:
    """A host that takes no new jobs, or takes them again, and the jobs that it has begun."""

    host: str
    draining: bool
    left: tuple[Begun, ...]


def get(service: Service, name: str) -> HostDetail:
    """Return one host; raise an error with the known names if it was never seen."""
    every = hosts.every(service)
    host = next((each for each in every if each.name == name), None)
    if host is None:
        names = [each.name for each in every]
        missing = NotFoundError(f"no host {name}; known: {', '.join(names) or 'none'}", "service host list")
        raise with_nearest(missing, name, names)
    checkouts = tuple(repo.name for repo in stored_repos.every(service.store) if name in repo.checkouts)
    return HostDetail(**asdict(host), checkouts=checkouts, open_jobs=tuple(stored.open_jobs(service.store, name)))


def remove(service: Service, name: str) -> HostDetail:
    """Forget a host that is gone for good, unless something still depends on it."""
    host = get(service, name)
    if host.has_worker:
        raise RefusedError(f"the host {name} works", f"on {name}: service daemon stop")
    if host.open_jobs:
        says = f"{len(host.open_jobs)} open jobs belong to {name}: {', '.join(host.open_jobs[:SHOWN])}"
        raise RefusedError(says, Commands(f"service job kill {host.open_jobs[0]}", f"on {name}: service daemon start"))
    only = [repo.name for repo in stored_repos.every(service.store) if [*repo.checkouts] == [name] and not repo.remote]
    if only:
        ways = (f"where it is now: service repo add {only[0]} PATH --move", f"service repo remove {only[0]}")
        raise RefusedError(f"only {name} has a checkout of {', '.join(only[:SHOWN])}", Commands(*ways))
    if not stored.remove(service.store, host.seen):
        raise RefusedError(f"{name} was seen just now", "service host list")
    return host


def drain(service: Service, name: str = "", *, undo: bool = False) -> Drained:
    """Have a host take no new jobs, or take them again; by default this host."""
    host = get(service, name or service.settings.host)
    stored.drain(service.store, host.name, undo=undo)
    return left(service, host.name)


def left(service: Service, name: str) -> Drained:
    """Return what a host is working on."""
    host, held = get(service, name), moves.begun_on(service.store, name)
    begun = [Begun(each.job_id, each.repo, max(0.0, host.now - (each.begun_at or host.now))) for each in held]
    return Drained(host.name, host.draining_at is not None, tuple(begun))
