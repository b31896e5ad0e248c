"""Scaling of recall: a recall compared with a bare FTS5 query for equal words over a table of equal entries.

Run it on an idle machine: `python tests/benchmarks/bench_memory.py`. Where much is found the ratio should stay near 1:
the rest is the fixed cost of a statement, and the look-up of each match's owner.
"""

import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sqlalchemy import Engine, insert

from activities.settings.home import Home
from activities.store import schema
from activities.store.database import open_store
from activities.store.registry import memory_rows
from activities.store.registry.memory_rows import NewMemory
from workflows.policy.memory import MemoryState

SIZES = (1_000, 10_000, 100_000)
LIMIT = 15
ROUNDS = 15
WORDS = [f"w{n}" for n in range(20_000)]
WEIGHTS = [1 / (n + 1) for n in range(len(WORDS))]
"""Words are distributed as in a language: a few occur nearly everywhere."""
QUERIES = {"a rare word": "w9000", "a frequent word": "w20", "a sentence": "w3 w40 w500 w2000 w9000 w15000"}


def fill(store: Engine, size: int) -> None:
    """Insert confirmed entries of thirty words, of three owners."""
    chance = random.Random(7233)
    rows = []
    for number in range(size):
        text = " ".join(chance.choices(WORDS, WEIGHTS, k=30))
        owner = (None, "scout", "builder")[number % 3]
        row = memory_rows._row(NewMemory(owner, "acme/shop", f"key {number}", text, "bench"))
        rows.append(row | {"state": MemoryState.CONFIRMED})
    with store.begin() as connection:
        connection.execute(insert(schema.memory), rows)


def bare(path: Path) -> Callable[[str], object]:
    """Return a query of the index alone: numbers and ranks, best first."""
    connection = sqlite3.connect(path)
    sql = f"SELECT rowid, rank FROM memory_search WHERE memory_search MATCH ? ORDER BY rank LIMIT {LIMIT}"
    return lambda query: connection.execute(sql, (" OR ".join(f'"{w}"' for w in query.split()),)).fetchall()


def seconds(work: Callable[[str], object], query: str) -> float:
    start = time.perf_counter()
    work(query)
    return time.perf_counter() - start


def compare(ours: Callable[[str], object], theirs: Callable[[str], object], query: str) -> tuple[float, float]:
    """Return both medians, measured in turns."""
    pairs = [(seconds(ours, query), seconds(theirs, query)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def rows(size: int) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name) / "home")
        store = open_store(home)
        fill(store, size)
        alone = bare(home.store)
        lines = []
        for agent, whose in ((None, "everybody's"), ("scout", "own and shared")):
            for what, query in QUERIES.items():

                def ours(query: str, agent: str | None = agent) -> object:
                    return memory_rows.recall(store, query, agent=agent, shared=False, repo="acme/shop", limit=LIMIT)

                took, floor = compare(ours, alone, query)
                lines.append(f"{size:>8,} entries  {whose:15} {what:16} {took / floor:6.1f} x the bare query")
        store.dispose()
        return lines


def main() -> None:
    for size in SIZES:
        sys.stdout.write("\n".join(rows(size)) + "\n")


if __name__ == "__main__":
    main()
