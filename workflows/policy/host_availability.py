"""Host availability, judged by when its worker was last seen, and the commands that restore it."""

from dataclasses import dataclass, field

from workflows.text.durations import clock

UNSEEN_SECONDS = 60.0
"""Seconds without a sign of life after which a worker is missing; it sends one every ten seconds."""


@dataclass(frozen=True)
class HostSeen:
    """The last known state of a tree's host; no time means that no worker of it was ever seen."""

    name: str
    seen_at: float | None = None
    stopped_at: float | None = None
    """Time of an orderly stop of the host's worker, if the worker has not come back."""
    held: str = ""
    """The reason why the host's worker starts nothing."""
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


DRAINED = "it is drained"
"""The reason why a drained host starts nothing."""


WITHOUT_TEMPORAL = "Temporal does not answer it"
"""The reason for holding a host that cannot reach Temporal: it would hear of no kill, and could report no end."""


def way_to_room(host: HostSeen) -> str:
    """Return the command after which a host that holds its jobs back starts them."""
    ways = {DRAINED: way_to_undo(host.name), WITHOUT_TEMPORAL: f"on {host.name}: service doctor"}
    return ways.get(host.held, f"on {host.name}: service gc")


def way_to_undo(host: str) -> str:
    """Return the command after which a drained host starts jobs again."""
    return f"service host drain {host} --undo"


HOST_UNSEEN = "host_unseen"
"""The kind of the notification that a host is not seen any more."""


def unseen_says(host: HostSeen) -> str:
    """Return the sentence that tells people of a host that was not seen for a minute (ruling Q5)."""
    since = f"it was stopped at {clock(host.stopped_at)}" if host.stopped_at else f"not seen since {seen_time(host)}"
    return f"the host {host.name} has no worker: {since}"


def seen_time(host: HostSeen) -> str:
    """Return when the host was last seen, in words."""
    return clock(host.seen_at) if host.seen_at is not None else "ever"


def way_to_move(host: str) -> str:
    """Return the command that lets other hosts continue the jobs of this host."""
    return f"service host lost {host}"
