"""Host availability, judged by when its worker was last seen, and the commands that restore it."""

from dataclasses import dataclass, field

UNSEEN_SECONDS = 60.0
"""Seconds without a sign of life after which a worker is missing; it sends one every ten seconds."""


@dataclass(frozen=True)
class HostSeen:
    """The last known state of a tree's host; no time means that no worker of it was ever seen."""

    name: str
    seen_at: float | None = None
    stopped_at: float | None = None
    """Time at which its worker was stopped in order, if it has not come back."""
    held: str = ""
    """Reason that its worker starts nothing."""
    now: float = field(default=0.0, compare=False)
    """Time on the store's clock when this was read: the clock of the machine that judges may differ."""


def lacks_worker(host: HostSeen) -> bool:
    """Return whether the host has no worker: it was not seen for a minute, or was stopped, which counts at once."""
    return host.stopped_at is not None or unseen(host)


def unseen(host: HostSeen) -> bool:
    """Return whether the worker has been missing for longer than a restart takes."""
    return host.seen_at is None or host.now - host.seen_at > UNSEEN_SECONDS


def way_back(host: str) -> str:
    """Return the command that restarts the host's worker."""
    return f"on {host}: service daemon start"


def way_to_room(host: str) -> str:
    """Return the command that frees disk space on the host."""
    return f"on {host}: service gc"
