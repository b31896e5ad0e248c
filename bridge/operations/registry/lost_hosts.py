"""Moving the jobs of a lost host (ruling Q5). Apart from `hosts`, since the library of Temporal takes long to load."""

from dataclasses import dataclass

from activities import lost_hosts
from activities.store import moves
from activities.store.registry import hosts as stored
from bridge.operations.registry import hosts
from bridge.operations.service import Service
from bridge.operations.temporal import client_of, translated
from workflows.model.errors import Commands, RefusedError
from workflows.policy.host_availability import lacks_worker, reason_of_move, way_back


@dataclass(frozen=True)
class Lost:
    """A host that was declared lost, and what becomes of its jobs."""

    host: str
    moving: tuple[str, ...]
    """The jobs that go on elsewhere."""
    staying: tuple[str, ...]
    """The jobs on a plain checkout, which wait for the host."""
    next: str = ""
    """The command after which the jobs in `staying` go on; empty if none stay."""


async def lost(service: Service, name: str, *, actor: str, now: bool = False) -> Lost:
    """Move the jobs of a host elsewhere, as a person orders. Refused while it works, unless `now` is given."""
    host = hosts.get(service, name)
    works = not lacks_worker(host.seen)
    if works and not now:
        seconds = max(0.0, host.now - host.seen_at)
        ways = Commands(f"service host drain {name}", f"service host lost {name} --now  (moves its jobs all the same)")
        raise RefusedError(f"the host {name} works: it was seen {seconds:.0f} s ago", ways)
    if len(stored.every(service.store)) == 1:
        raise RefusedError(f"{name} is the only host, so its jobs cannot move", way_back(name))
    client = await client_of(service)
    stored.lose(service.store, host.seen)
    held = [*moves.begun_on(service.store, name), *moves.queued_on(service.store, name)]
    reason = f"{actor} declared its host {name} lost" if works else reason_of_move(host.seen)
    with translated():
        going = await lost_hosts.move(client, held, lost_hosts.order_of(host, reason, always=works))
    staying = tuple(each.job_id for each in held if not each.moves)
    return Lost(name, tuple(each.job_id for each in going), staying, way_back(name) if staying else "")
