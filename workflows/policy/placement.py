"""The choice of a host for an attempt, from a handful drawn from the table of the fleet's hosts (ruling Q4).

The store draws hosts at random from the pools that can run the attempt, the best pools first. Of these hosts, the one
with the largest share of free slots is chosen. The cost does not depend on the size of the fleet.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from itertools import groupby
from typing import TypeVar

from workflows.policy.host_availability import HostSeen, lacks_worker, way_back, way_to_room, way_to_undo

T = TypeVar("T")
HAS_REPO = 1.5
"""The factor on the share of free slots of a host that has the repository, since it need not fetch it."""

OWN_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The form of a label that people give to a host. Labels that a host has by itself begin with a prefix."""

ASKED_LABEL = r"(?:(?:host|runtime|os|arch):)?[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
"""The form of a label that a job may require or prefer."""

MOST_LABELS = 16

NO_HOST = "no host "
"""How every reason begins why no host was chosen."""

RUNTIME, NAMED = "runtime:", "host:"
"""Prefixes of the labels for a host's runtimes and for its name, which it has by itself."""

HANDFUL = 8
"""The most hosts among which an attempt is placed; a fleet of at most this size is read as a whole."""

MOST_POOLS = 16
"""The most pools that a handful is drawn from."""


class Room(IntEnum):
    """How much room a host has for attempts; the lowest value is best."""

    IDLE = 0
    """The host has no work."""
    FREE = 1
    FULL = 2
    CLOSED = 3
    """The host takes no attempts at present."""


@dataclass(frozen=True)
class Pool:
    """Hosts with equal room and equal labels, except for the labels of their names."""

    room: Room
    labels: frozenset[str]

    @property
    def key(self) -> str:
        """Return the text by which the store finds the pool's hosts. Keys sort by room, most room first."""
        return " ".join((str(self.room.value), *sorted(self.labels)))

    @classmethod
    def read(cls, key: str) -> "Pool":
        room, *labels = key.split(" ")
        return cls(Room(int(room or Room.FULL)), frozenset(labels))


@dataclass(frozen=True)
class Host:
    """A host as the fleet's table has it."""

    seen: HostSeen
    slots: int
    load: int = 0
    """The attempts that have or wait for a slot, and those placed since the host's last report."""
    labels: frozenset[str] = frozenset()
    has_repo: bool = False
    """True if the host has a checkout or a mirror of the repository."""
    draining_at: float | None = None
    lost_at: float | None = None

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def free(self) -> int:
        return self.slots - self.load

    @property
    def pool(self) -> Pool:
        if why_not(self) or self.slots <= 0:
            room = Room.CLOSED
        elif self.load <= 0:
            room = Room.IDLE
        else:
            room = Room.FREE if self.free > 0 else Room.FULL
        return Pool(room, self.labels - {f"{NAMED}{self.name}"})


@dataclass(frozen=True)
class Need:
    """What an attempt requires and prefers of its host."""

    repo: str
    require: frozenset[str] = frozenset()
    """Labels that the attempt's host must have; one of them names the runtime."""
    prefer: frozenset[str] = frozenset()
    """Labels that the attempt's host should have, if a host with them is free."""
    near: str = ""
    """The host to prefer among those that have equally many of the preferred labels."""
    only: frozenset[str] | None = None
    """The hosts with a checkout, if the repository has no remote; None if any host can fetch it."""

    def met_by(self, host: Host) -> bool:
        """Return whether the host could run the attempt, at once or later."""
        return not self.lacking(host.labels) and (self.only is None or host.name in self.only) and host.slots > 0

    def lacking(self, labels: frozenset[str]) -> frozenset[str]:
        """Return the required labels that a host does not have."""
        return self.require - labels

    def liking(self, host: Host) -> tuple[int, bool]:
        """Return how much the attempt prefers a host: first by preferred labels, then for being the `near` host."""
        return len(self.prefer & host.labels), host.name == self.near

    @property
    def named_hosts(self) -> frozenset[str]:
        """Return the hosts to look up by name: those in the labels, those with the only checkouts, and the `near`
        host.
        """
        by_label = {label.removeprefix(NAMED) for label in self.require | self.prefer if label.startswith(NAMED)}
        return frozenset({*by_label, *(self.only or ()), self.near} - {""})


@dataclass(frozen=True)
class Placement:
    """The chosen host; or why none was chosen, and the command to type."""

    host: str = ""
    reason: str = ""
    next: str = ""


def pools_for(need: Need, pools: Sequence[Pool], seed: str) -> list[list[Pool]]:
    """Group the pools whose hosts can run the attempt, best group first; the pools of a group are equally good.

    Return no pools if hosts are required by name or by their checkout: such hosts are looked up by name.
    """
    if need.only is not None or any(label.startswith(NAMED) for label in need.require):
        return []

    def rank(pool: Pool) -> tuple[bool, int, Room]:
        full = pool.room >= Room.FULL
        return full, 0 if full else -len(need.prefer & pool.labels), pool.room

    able = sorted(_rotate([pool for pool in pools if not need.lacking(pool.labels)], seed), key=rank)
    return [list(alike) for _, alike in groupby(able[:MOST_POOLS], key=rank)]


def place(need: Need, hosts: Sequence[Host], seed: str, others: Collection[str] = ()) -> Placement:
    """Choose a host with a free slot, or else the one with the shortest queue for its size. Equal seeds give equal
    choices.

    `others` are the labels of hosts that were not drawn. If no slot is free, the attempt waits in a host's queue, which
    is fair (ruling C8), so no attempt starves.
    """
    able = [host for host in hosts if need.met_by(host)]
    ready = [host for host in able if not why_not(host)]
    if not ready and need.only is not None:
        ready = able  # no other host can have it: its queue keeps the attempt until it is back
    return Placement(choose(need, ready, seed).name) if ready else _refusal(need, hosts, able, others)


def choose(need: Need, ready: Sequence[Host], seed: str) -> Host:
    """Choose one of the hosts that can run the attempt."""
    if free := _rotate([host for host in ready if host.free > 0], seed):
        most = max(map(need.liking, free))
        liked = [host for host in free if need.liking(host) == most]
        return max(liked, key=_emptiness)
    return min(_rotate(ready, seed), key=lambda host: (host.load + 1) / host.slots)


def _emptiness(host: Host) -> tuple[float, int]:
    return host.free / host.slots * (HAS_REPO if host.has_repo else 1.0), host.slots


def _rotate(values: Sequence[T], seed: str) -> list[T]:
    """Rotate the values by an offset that the seed decides, so that no value is always first among equal ones."""
    first = int.from_bytes(sha256(seed.encode()).digest()[:8]) % (len(values) or 1)
    return [*values[first:], *values[:first]]


def choose_moves(
    waiting: Iterable[tuple[T, str, Need]], hosts: Sequence[Host], idle: Collection[str]
) -> list[tuple[T, str]]:
    """Choose attempts to move from a full host to an idle one, at most one for each free slot there (ruling Q4.freed).

    `waiting` has each attempt with the name of its full host and its need. Return the moving attempts, each with its
    new host.
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


def why_not(host: Host) -> str:
    """Return why a host takes no attempts at present; empty if it takes them."""
    if host.lost_at is not None:
        return "is lost"
    if lacks_worker(host.seen):
        return "has no worker"
    if host.draining_at is not None:
        return "is draining"
    return f"starts nothing: {host.seen.held}" if host.seen.held else ""


def _refusal(need: Need, hosts: Sequence[Host], able: Sequence[Host], others: Collection[str]) -> Placement:
    """Return why no host can run the attempt, and the command to type."""
    if able:
        states = "; ".join(f"{host.name} {why_not(host)}" for host in able)
        return Placement(reason=f"no host that can run it takes jobs: {states}", next=_way_back(able[0], need))
    if missing := need.require.difference(others, *(host.labels for host in hosts)):
        return Placement(reason=f"no host has {words(missing)}", next=way_to(missing))
    if need.only is None:
        return Placement(reason=f"no host has all of: {words(need.require)}", next="service host list")
    homes = {host.name: words(need.lacking(host.labels)) for host in hosts if host.name in need.only}
    if not homes:
        where = ", ".join(sorted(need.only)) or "none"
        return Placement(reason=f"no host that has {need.repo} was ever seen: {where}", next="service host list")
    lacks = "; ".join(f"{name} lacks {what}" for name, what in homes.items())
    return Placement(reason=f"no host that has {need.repo} can run it: {lacks}", next=way_to_share(need.repo))


def words(labels: Iterable[str]) -> str:
    """Describe labels for people."""
    runtimes = sorted(label.removeprefix(RUNTIME) for label in labels if label.startswith(RUNTIME))
    others = sorted(label for label in labels if not label.startswith(RUNTIME))
    named = [f"the label {', '.join(others)}"] if others else []
    return " and ".join([*(f"the runtime {runtime}" for runtime in runtimes), *named])


def way_to(missing: Collection[str]) -> str:
    """Return the command that helps to get a host with labels that no host has."""
    if gone := next((label for label in missing if label.startswith(NAMED)), ""):
        return way_to_replace(gone.removeprefix(NAMED))
    return "service doctor" if all(label.startswith(RUNTIME) for label in missing) else "service host list"


def way_to_share(repo: str) -> str:
    """Return the command that lets other hosts work on a repository."""
    return f"service repo add {repo} --remote URL"


def way_to_replace(host: str) -> str:
    """Return the command that gives a new machine the name of a host that does not return."""
    return f"on a new machine: service host join TOKEN --host {host}"


def _way_back(host: Host, need: Need) -> str:
    """Return the command that makes the host take jobs again. If the attempt requires the host by name, it may also be
    replaced.
    """
    if host.lost_at is not None or lacks_worker(host.seen):
        named = f"{NAMED}{host.name}" in need.require
        return way_back(host.name) + (f"; if it is gone for good, {way_to_replace(host.name)}" if named else "")
    return way_to_undo(host.name) if host.draining_at is not None else way_to_room(host.seen)
