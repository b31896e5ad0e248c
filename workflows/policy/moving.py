"""Which attempts move from one host to another, and how (rulings Q4.freed, Q5).

An attempt that no host has begun keeps its number when it moves from a lost, drained or full host. A begun attempt
moves only from a lost host that was not seen since: its job runs as a new attempt elsewhere.
"""

from workflows.model.jobs import JobOutcome
from workflows.model.wire import Wire
from workflows.policy.host_availability import HostSeen, seen_time


class Move(Wire):
    """An order to give up an attempt on its host, and to offer its job to another host."""

    job_id: str
    attempt: int
    host: str
    reason: str
    begun: bool = True
    """True if the order also applies to an attempt that the host has begun."""
    last_seen: float | None = None
    """When the host was last seen. If it is seen later, it has come back and keeps its attempts."""


def move_off_lost_host(host: HostSeen, declared_by: str = "") -> Move:
    """Return the order for all attempts of a lost host. It also holds for a working host that a person declared
    lost.
    """
    if declared_by:
        return _order(host.name, f"{declared_by} declared its host {host.name} lost", begun=True)
    reason = f"its host {host.name} is lost: not seen since {seen_time(host)}"
    return _order(host.name, reason, begun=True).model_copy(update={"last_seen": host.seen_at})


def move_off_drained_host(host: str) -> Move:
    """Return the order for attempts that a drained host has not begun."""
    return _order(host, f"its host {host} is drained", begun=False)


def move_off_full_host(host: str, other: str) -> Move:
    """Return the order for attempts that wait at a full host while another host has a free slot."""
    return _order(host, f"its host {host} is full, and {other} has a free slot", begun=False)


def _order(host: str, reason: str, *, begun: bool) -> Move:
    """Return an order without job and attempt, which the caller fills in."""
    return Move(job_id="", attempt=0, host=host, reason=reason, begun=begun)


def leaves(move: Move, begun_on: str | None, seen_at: float | None) -> bool:
    """Return whether an attempt leaves its host. `seen_at` is when the host was last seen, `begun_on` the host that has
    begun the attempt.

    A host that was seen after the order was given has come back, and keeps its attempts.
    """
    came_back = move.last_seen is not None and seen_at is not None and seen_at > move.last_seen
    return not came_back and (begun_on is None or (move.begun and begun_on == move.host))


def moves_as_it_is(outcome: JobOutcome) -> bool:
    """Return whether a moved attempt keeps its number, because no host had begun it; otherwise its job begins again."""
    return outcome.moved and outcome.begun_at is None
