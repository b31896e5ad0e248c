"""Those that `bench_product` compares, and what is measured of each."""

import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.benchmarks.own_processes import Processor, Talk, machine

T = TypeVar("T")
REST = 0.3
"""Seconds for what a tree leaves to do: whoever is next does not pay for it."""
_LONG_REST = 3.0
"""The same, of a burst."""
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
        return {name: int(_asked(path, _SIZE)) for name, path in self.databases.items()}

    def box(self) -> str:
        """What held the agent that ended last, as its record tells."""
        store = self.databases.get("store.db")
        return str((store and _asked(store, _BOX)) or "none")


def in_turns(sides: Sequence[Side], rounds: int, take: Callable[[Side], T]) -> dict[str, list[T]]:
    """What each side shows in every round; each round has an order of its own, so that none follows always the same."""
    found: dict[str, list[T]] = {side.name: [] for side in sides}
    for number in range(rounds):
        for side in random.Random(number).sample(sides, len(sides)):
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
    time.sleep(_LONG_REST)
    processor = {name: (spent - before[name]) * 1000 / count for name, spent in side.spent().items()}
    grown = {name: (size - sizes[name]) / count for name, size in side.sizes().items()}
    return Burst(took["seconds"], took["started"], processor, whole, grown)


def at_rest(sides: Sequence[Side]) -> dict[str, dict[str, float]]:
    """Milliseconds of processor time a second that each takes while nobody asks for anything."""
    time.sleep(_LONG_REST)
    before = {side.name: side.spent() for side in sides}
    time.sleep(_IDLE)
    return {
        side.name: {name: (spent - before[side.name][name]) * 1000 / _IDLE for name, spent in side.spent().items()}
        for side in sides
    }


_SIZE = """
    SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_BOX = "SELECT json_extract(diagnostics, '$.box') FROM runs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 1"


def _asked(path: Path, query: str) -> Any:
    """The one value that a database answers with."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()
