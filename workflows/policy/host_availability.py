"""Whether a host is available, judged by when its worker was last seen, and the commands that bring it back."""

from dataclasses import dataclass, field

from workflows.text.durations import clock

UNSEEN_SECONDS = 60.0
"""Seconds without a sign of life after which a worker is missing; it sends one every ten seconds."""


@dataclass(frozen=True)
class HostSeen:
    """The last known state of a host. Without a time, no worker of the host was ever seen."""

    name: str
    seen_at: float | None = None
    stopped_at: float | None = None
    """When the host's worker was stopped in an orderly way; None if it runs again, or was not stopped."""
    held: str = ""
    """Why the host's worker starts no jobs; empty if it starts them."""
    now: float = field(default=0.0, compare=False)
    """When this was read, by the store's clock: the clock of the judging machine may differ."""


def lacks_worker(host: HostSeen) -> bool:
    """Return whether the host has no worker: it was stopped, or was not seen for a minute."""
    return host.stopped_at is not None or unseen(host)


def unseen(host: HostSeen) -> bool:
    """Return whether the worker was not seen for longer than a restart takes."""
    return host.seen_at is None or host.now - host.seen_at > UNSEEN_SECONDS


def way_back(host: str) -> str:
    """Return the command that restarts the host's worker."""
    return f"on {host}: service daemon start"


DRAINED = "it is drained"
"""Why a drained host starts no jobs."""


WITHOUT_TEMPORAL = "Temporal does not answer it"
"""Why a host that cannot reach Temporal starts no jobs: it would not hear of a kill, and could not report an end."""


def way_to_room(host: HostSeen) -> str:
    """Return the command that makes a host which holds its jobs back start them."""
    ways = {DRAINED: way_to_undo(host.name), WITHOUT_TEMPORAL: f"on {host.name}: service doctor"}
    return ways.get(host.held, f"on {host.name}: service gc")


def way_to_undo(host: str) -> str:
    """Return the command that makes a drained host start jobs again."""
    return f"service host drain {host} --undo"


HOST_UNSEEN = "host_unseen"
"""The kind of the notification that a host has no worker any more."""


def unseen_says(host: HostSeen) -> str:
    """Return the sentence that tells people that a host has no worker (ruling Q5)."""
    since = f"it was stopped at {clock(host.stopped_at)}" if host.stopped_at else f"not seen since {seen_time(host)}"
    return f"the host {host.name} has no worker: {since}"


def seen_time(host: HostSeen) -> str:
    """Return when the host was last seen, in words."""
    return clock(host.seen_at) if host.seen_at is not None else "ever"


def way_to_move(host: str) -> str:
    """Return the command that moves the jobs of this host to other hosts."""
    return f"service host lost {host}"
