"""Those that `bench_product` compares, and what is measured of each."""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.benchmarks.own_processes import Processor, Talk, machine

T = TypeVar("T")
_REST = 3.0
"""Seconds for what a burst leaves to do."""
_IDLE = 10.0
"""Seconds in which nobody asks for anything."""


@dataclass(frozen=True)
class Side:
    """One of those that are compared."""

    name: str
    talk: Talk
    pids: Mapping[str, int]
    databases: Mapping[str, Path]

    def spent(self) -> dict[str, float]:
        """Seconds of processor time by process; what supervisors and agents take nobody counts but the machine."""
        found = {}
        for name, pid in self.pids.items():
            spent = Processor.of(pid)
            found[name] = spent.own
            if name == "worker":
                found["children of the worker"] = spent.children
        return found

    def sizes(self) -> dict[str, int]:
        """Bytes in use of each database, with what only stands in its write-ahead log."""
        return {name: _size(path) for name, path in self.databases.items()}


def in_turns(sides: Sequence[Side], rounds: int, take: Callable[[Side], T]) -> dict[str, list[T]]:
    """What each side shows in every round; each round begins with another one."""
    found: dict[str, list[T]] = {side.name: [] for side in sides}
    for number in range(rounds):
        first = number % len(sides)
        for side in (*sides[first:], *sides[:first]):
            found[side.name].append(take(side))
    return found


@dataclass(frozen=True)
class Burst:
    """What many small trees at once took."""

    seconds: float
    started: float
    """Seconds until the last one was started."""
    processor: dict[str, float]
    """Milliseconds a job, by process."""
    machine: float
    """Milliseconds a job of everything that ran on the machine meanwhile: supervisors, boxes and agents too."""
    bytes: dict[str, float]
    """A job, by database."""


def burst(count: int, side: Side) -> Burst:
    """So many at once, and what they leave to do."""
    before, sizes, whole = side.spent(), side.sizes(), machine()
    took = side.talk("burst", count=count)
    whole = (machine() - whole) * 1000 / count
    time.sleep(_REST)
    processor = {name: (spent - before[name]) * 1000 / count for name, spent in side.spent().items()}
    grown = {name: (size - sizes[name]) / count for name, size in side.sizes().items()}
    return Burst(took["seconds"], took["started"], processor, whole, grown)


def at_rest(sides: Sequence[Side]) -> dict[str, dict[str, float]]:
    """Milliseconds of processor time a second that each takes while nobody asks for anything."""
    time.sleep(_REST)
    before = {side.name: side.spent() for side in sides}
    time.sleep(_IDLE)
    return {
        side.name: {name: (spent - before[side.name][name]) * 1000 / _IDLE for name, spent in side.spent().items()}
        for side in sides
    }


def _size(path: Path) -> int:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        pages, free, size = (
            connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
    finally:
        connection.close()
