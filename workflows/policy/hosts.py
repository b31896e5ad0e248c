"""Whether a host's worker is there, from when it was seen last; and what to say of a job that waits for it."""

from dataclasses import dataclass

UNSEEN_SECONDS = 60.0
"""A worker says every ten seconds that it is there."""


@dataclass(frozen=True)
class HostSeen:
    """What is known of the host that a tree works on; no time means that no worker of it was ever seen."""

    name: str
    seen_at: float | None = None
    stopped_at: float | None = None
    """Its worker ended in order, and has not come back."""
    held: str = ""
    """Why its worker starts nothing."""


def lacks_worker(host: HostSeen, now: float) -> bool:
    """Not seen for a minute; one that was stopped is known to be gone at once."""
    return host.stopped_at is not None or unseen(host, now)


def unseen(host: HostSeen, now: float) -> bool:
    """Long enough that a person should know; a restart of the worker takes less."""
    return host.seen_at is None or now - host.seen_at > UNSEEN_SECONDS


def way_back(host: str) -> str:
    """What brings its worker back."""
    return f"on {host}: service daemon start"


def way_to_room(host: str) -> str:
    """What frees room on its disk."""
    return f"on {host}: service gc"
