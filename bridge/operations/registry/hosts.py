"""Operations on a host that shares a store: show it, remove it, drain it, give it up (rulings Q1, Q5, Q8)."""

from dataclasses import asdict, dataclass

from activities.store import moves
from activities.store.registry import host_rows, repo_rows
from bridge.operations.jobs import hosts
from bridge.operations.jobs.hosts import HostView
from bridge.operations.service import Service
from workflows.model.errors import Commands, NotFoundError, RefusedError, with_nearest
from workflows.policy.host_availability import lacks_worker, way_back
from workflows.policy.moving import move_off_lost_host
from workflows.text.plurals import quantity

SHOWN = 3
"""Jobs and repositories that an error names."""


@dataclass(frozen=True)
class HostDetail(HostView):
    """A host, with its checkouts and its open jobs."""

    checkouts: tuple[str, ...] = ()
    """The repositories that have a checkout there."""
    open_jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class BegunJob:
    """A job that a host is working on."""

    job_id: str
    repo: str
    seconds: float
    """The time since its host began it."""


@dataclass(frozen=True)
class Drained:
    """The outcome of draining a host or undoing that, and the jobs that the host has begun."""

    host: str
    draining: bool
    left: tuple[BegunJob, ...]


@dataclass(frozen=True)
class LostHost:
    """A host that was declared lost, with its jobs that move and those that stay."""

    host: str
    moving: tuple[str, ...]
    """The jobs that continue on other hosts."""
    staying: tuple[str, ...]
    """The jobs on a plain checkout, which wait for the host."""
    next: str = ""
    """The command after which the jobs in `staying` continue; empty if none stay."""


def get(service: Service, name: str) -> HostDetail:
    """Return one host; raise an error with the known names if it was never seen."""
    every = hosts.every(service)
    host = next((each for each in every if each.name == name), None)
    if host is None:
        names = [each.name for each in every]
        missing = NotFoundError(f"no host {name}; known: {', '.join(names) or 'none'}", "service host list")
        raise with_nearest(missing, name, names)
    checkouts = tuple(repo.name for repo in repo_rows.every(service.store) if name in repo.checkouts)
    return HostDetail(**asdict(host), checkouts=checkouts, open_jobs=tuple(host_rows.open_jobs(service.store, name)))


def remove(service: Service, name: str) -> HostDetail:
    """Forget a host that will not return, unless something still depends on it."""
    host = get(service, name)
    if host.has_worker:
        raise RefusedError(f"the host {name} works", f"on {name}: service daemon stop")
    if host.open_jobs:
        says = f"{name} has {quantity(len(host.open_jobs), 'open job')}: {', '.join(host.open_jobs[:SHOWN])}"
        raise RefusedError(says, Commands(f"service job kill {host.open_jobs[0]}", f"on {name}: service daemon start"))
    only = [repo.name for repo in repo_rows.every(service.store) if [*repo.checkouts] == [name] and not repo.remote]
    if only:
        ways = (f"where it is now: service repo add {only[0]} PATH --move", f"service repo remove {only[0]}")
        raise RefusedError(f"only {name} has a checkout of {', '.join(only[:SHOWN])}", Commands(*ways))
    if not host_rows.remove(service.store, host.seen):
        raise RefusedError(f"{name} was seen just now", "service host list")
    return host


def drain(service: Service, name: str = "", *, undo: bool = False) -> Drained:
    """Have a host take no new jobs, or take them again; by default this host."""
    host = get(service, name or service.settings.host)
    host_rows.drain(service.store, host.name, undo=undo)
    return drain_status(service, host.name)


def drain_status(service: Service, name: str) -> Drained:
    """Return what a host is working on."""
    host, held = get(service, name), moves.begun_on(service.store, name)
    begun = [BegunJob(each.job_id, each.repo, max(0.0, host.now - (each.begun_at or host.now))) for each in held]
    return Drained(host.name, host.draining_at is not None, tuple(begun))


async def give_up(service: Service, name: str, *, actor: str, now: bool = False) -> LostHost:
    """Declare a host lost and move its jobs to other hosts. Refused while the host is alive, unless `now` is given."""
    from activities import moving  # Temporal's library takes long to load
    from bridge.operations.temporal import client_of, translate_errors

    host = get(service, name)
    works = not lacks_worker(host.seen)
    if works and not now:
        seconds = max(0.0, host.now - host.seen_at)
        ways = Commands(f"service host drain {name}", f"service host lost {name} --now  (moves its jobs all the same)")
        raise RefusedError(f"the host {name} works: it was seen {seconds:.0f} s ago", ways)
    if len(host_rows.every(service.store)) == 1:
        raise RefusedError(f"{name} is the only host, so its jobs cannot move", way_back(name))
    client = await client_of(service)
    host_rows.lose(service.store, host.seen)
    held = [*moves.begun_on(service.store, name), *moves.queued_on(service.store, name)]
    with translate_errors():
        going = await moving.move(client, held, move_off_lost_host(host.seen, actor if works else ""))
    staying = tuple(each.job_id for each in held if not each.moves)
    return LostHost(name, tuple(each.job_id for each in going), staying, way_back(name) if staying else "")
