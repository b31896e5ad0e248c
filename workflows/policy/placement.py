"""The choice of a host for an attempt, from the table of the fleet's hosts (ruling Q4).

Not a scheduler: one function that reads the table once. Of the hosts that can run the attempt, two are drawn, and the
one with the larger share of free slots is chosen; this spreads the load, also where several trees choose at once.
"""

import struct
from bisect import bisect
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import TypeVar

from workflows.policy.host_availability import HostSeen, lacks_worker, way_back, way_to_room, way_to_undo

T = TypeVar("T")
HAS_REPO = 1.5
"""The factor on the free share of a host that has the repository, and need not fetch it."""

OWN_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The form of a label that people give to a host. Those that a host has by itself have a prefix."""

ASKED_LABEL = r"(?:(?:host|runtime|os|arch):)?[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
"""The form of a label that is asked of a host."""

MOST_LABELS = 16

NO_HOST = "no host "
"""The beginning of every reason why an attempt is placed nowhere."""

RUNTIME, NAMED = "runtime:", "host:"
"""Prefixes of the labels that a host has by itself for its runtimes and its name."""


@dataclass(frozen=True)
class Host:
    """A host as the table of the fleet has it."""

    seen: HostSeen
    slots: int
    load: int = 0
    """The attempts that have a slot or wait for one, and those placed since the host last reported."""
    labels: frozenset[str] = frozenset()
    has_repo: bool = False
    """True if it has the repository: as a checkout, or as a mirror."""
    draining_at: float | None = None
    lost_at: float | None = None

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def free(self) -> int:
        return self.slots - self.load


@dataclass(frozen=True)
class Need:
    """The requirements of an attempt on its host."""

    repo: str
    require: frozenset[str] = frozenset()
    """Labels that its host must have; one of them names the runtime."""
    prefer: frozenset[str] = frozenset()
    """Labels that its host should have, if a host with them is free."""
    only: frozenset[str] | None = None
    """The hosts with a checkout, if the repository has no remote; None: any host can get it."""

    def met_by(self, host: Host) -> bool:
        """Return whether the host could run the attempt, now or later."""
        return not self.lacking(host) and (self.only is None or host.name in self.only) and host.slots > 0

    def lacking(self, host: Host) -> frozenset[str]:
        """Return the required labels that the host has not. One of an earlier release does not report its runtimes."""
        missing = self.require - host.labels
        return missing if host.labels else frozenset(label for label in missing if not label.startswith(RUNTIME))


@dataclass(frozen=True)
class Placement:
    """The chosen host; or the reason that no host was chosen, and the command to type."""

    host: str = ""
    reason: str = ""
    next: str = ""


def place(need: Need, hosts: Sequence[Host], seed: str) -> Placement:
    """Choose a host with a free slot, or else the one with the shortest queue for its size. Deterministic by the seed.

    An attempt waits in its host's queue rather than without a host: the queue is fair (ruling C8), so nothing starves.
    """
    able = [host for host in hosts if need.met_by(host)]
    ready = [host for host in able if not why_not(host)]
    if not ready and need.only is not None:
        ready = able  # no other host can have it: its queue keeps the attempt until it is back
    return Placement(choose(ready, need.prefer, seed).name) if ready else _refusal(need, hosts, able)


def choose(ready: Sequence[Host], prefer: frozenset[str], seed: str) -> Host:
    """Choose among hosts that can run the attempt."""
    free = [host for host in ready if host.free > 0]
    if prefer and free:
        most = max(len(prefer & host.labels) for host in free)
        free = [host for host in free if len(prefer & host.labels) == most]
    lots = struct.unpack("4Q", sha256(seed.encode()).digest())
    if drawn := _drawn(free, lots):
        return max(drawn, key=lambda host: host.free / host.slots * (HAS_REPO if host.has_repo else 1.0))
    first = lots[0] % len(ready)
    return min((*ready[first:], *ready[:first]), key=lambda host: (host.load + 1) / host.slots)


def freed(waiting: Iterable[tuple[T, str, Need]], hosts: Sequence[Host], idle: Collection[str]) -> list[tuple[T, str]]:
    """Choose attempts that move from a full host to an idle one, no more than have a free slot there (ruling Q4.freed).

    `waiting` has each attempt with the name of its full host and its need. Return those that move, with the new host.
    """
    room, able = {host.name: host.free for host in hosts}, [host for host in hosts if host.name in idle]
    going = []
    for attempt, own, need in waiting:
        others = [host.name for host in able if room[host.name] > 0 and need.met_by(host)]
        if others and room.get(own, 0) < 0:
            other = max(others, key=room.__getitem__)
            room[other] -= 1
            room[own] += 1
            going.append((attempt, other))
    return going


def _drawn(hosts: Sequence[Host], lots: Sequence[int]) -> list[Host]:
    """Return the first two hosts that the lots fall on; the larger a host, the more fall on it."""
    if len(hosts) <= 2:
        return list(hosts)
    ends = [*accumulate(host.slots for host in hosts)]
    return [hosts[number] for number in dict.fromkeys(bisect(ends, lot % ends[-1]) for lot in lots)][:2]


def why_not(host: Host) -> str:
    """Return why a host takes no attempts now; empty if it takes them."""
    if host.lost_at is not None:
        return "is lost"
    if lacks_worker(host.seen):
        return "has no worker"
    if host.draining_at is not None:
        return "is draining"
    return f"starts nothing: {host.seen.held}" if host.seen.held else ""


def _refusal(need: Need, hosts: Sequence[Host], able: Sequence[Host]) -> Placement:
    """Say why no host can run the attempt, and what to type."""
    if able:
        states = "; ".join(f"{host.name} {why_not(host)}" for host in able)
        return Placement(reason=f"no host that can run it takes jobs: {states}", next=_way_back(able[0], need))
    if missing := need.require.difference(*(host.labels for host in hosts)):
        return Placement(reason=f"no host has {words(missing)}", next=way_to(missing))
    if need.only is None:
        return Placement(reason=f"no host has all of: {words(need.require)}", next="service host list")
    homes = {host.name: words(need.lacking(host)) for host in hosts if host.name in need.only}
    if not homes:
        where = ", ".join(sorted(need.only)) or "none"
        return Placement(reason=f"no host that has {need.repo} was ever seen: {where}", next="service host list")
    lacks = "; ".join(f"{name} lacks {what}" for name, what in homes.items())
    return Placement(reason=f"no host that has {need.repo} can run it: {lacks}", next=way_to_share(need.repo))


def words(labels: Iterable[str]) -> str:
    """Name labels for people."""
    runtimes = sorted(label.removeprefix(RUNTIME) for label in labels if label.startswith(RUNTIME))
    others = sorted(label for label in labels if not label.startswith(RUNTIME))
    named = [f"the label {', '.join(others)}"] if others else []
    return " and ".join([*(f"the runtime {runtime}" for runtime in runtimes), *named])


def way_to(missing: Collection[str]) -> str:
    """Return the command that shows how to give a host what no host has."""
    if gone := next((label for label in missing if label.startswith(NAMED)), ""):
        return way_to_replace(gone.removeprefix(NAMED))
    return "service doctor" if all(label.startswith(RUNTIME) for label in missing) else "service host list"


def way_to_share(repo: str) -> str:
    """Return the command that lets other hosts work on a repository."""
    return f"service repo add {repo} --remote URL"


def way_to_replace(host: str) -> str:
    """Return the command that gives a new machine the name of a host that is gone for good."""
    return f"on a new machine: service host join TOKEN --host {host}"


def _way_back(host: Host, need: Need) -> str:
    """Return the command after which the host takes jobs. One that an attempt requires by name may be replaced."""
    if host.lost_at is not None or lacks_worker(host.seen):
        named = f"{NAMED}{host.name}" in need.require
        return way_back(host.name) + (f"; if it is gone for good, {way_to_replace(host.name)}" if named else "")
    return way_to_undo(host.name) if host.draining_at is not None else way_to_room(host.seen)
