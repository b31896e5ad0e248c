"""The sides that `bench_product` compares, and their measurements."""

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
"""Seconds for a tree's remaining work, so that it does not slow the next side down."""
_LONG_REST = 3.0
"""Seconds for a burst's remaining work."""
_IDLE = 10.0
"""Seconds without any requests."""


@dataclass(frozen=True)
class Side:
    """One of the compared sides."""

    name: str
    talk: Talk
    pids: Mapping[str, int]
    databases: Mapping[str, Path]

    def spent(self) -> dict[str, float]:
        """Return the CPU seconds by process; those of supervisors and agents are only in the machine's."""
        seconds = {}
        for name, pid in self.pids.items():
            spent = Processor.of(pid)
            seconds[name] = spent.own
            if name == "worker":
                seconds["children of the worker"] = spent.children
        return seconds

    def sizes(self) -> dict[str, int]:
        """Return each database's bytes in use, including its write-ahead log."""
        return {name: int(_query(path, _SIZE)) for name, path in self.databases.items()}

    def box(self) -> str:
        """Return the box of the agent that ended last, from its record."""
        store = self.databases.get("store.db")
        return str((store and _query(store, _BOX)) or "none")


def in_turns(sides: Sequence[Side], rounds: int, take: Callable[[Side], T]) -> dict[str, list[T]]:
    """Measure each side in every round; each round has its own order, so that no side always follows another."""
    results: dict[str, list[T]] = {side.name: [] for side in sides}
    for number in range(rounds):
        for side in random.Random(number).sample(sides, len(sides)):
            results[side.name].append(take(side))
    return results


@dataclass(frozen=True)
class Burst:
    """The cost of many simultaneous small trees."""

    seconds: float
    started: float
    """Seconds until the last one was started."""
    processor: dict[str, float]
    """CPU milliseconds per job, by process."""
    machine: float
    """CPU milliseconds per job of the whole machine: supervisors, boxes and agents too."""
    bytes: dict[str, float]
    """Bytes per job, by database."""


def burst(count: int, side: Side) -> Burst:
    """Measure a burst, including its remaining work."""
    before, sizes, whole = side.spent(), side.sizes(), machine()
    took = side.talk("burst", count=count)
    whole = (machine() - whole) * 1000 / count
    time.sleep(_LONG_REST)
    processor = {name: (spent - before[name]) * 1000 / count for name, spent in side.spent().items()}
    grown = {name: (size - sizes[name]) / count for name, size in side.sizes().items()}
    return Burst(took["seconds"], took["started"], processor, whole, grown)


def at_rest(sides: Sequence[Side]) -> dict[str, dict[str, float]]:
    """Return the CPU milliseconds per second of each side without any requests."""
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
_BOX = (
    "SELECT json_extract(diagnostics, '$.box') FROM attempts WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 1"
)


def _query(path: Path, query: str) -> Any:
    """Query a single value."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()
