"""A client of an installed service that starts trees and waits for their end: orders and answers are lines of JSON.

The script imports only the product's own code; each revision that is measured brings its own.
"""

import asyncio
import json
import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from bridge.operations.orders import new_jobs
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.service import Service

REPO = "acme/shop"
PAUSE = 0.005
"""Seconds between two reads of the store. Each reads one row only, to spare the service's processors."""


def _record(path: Path) -> dict[str, Any]:
    """Read a record's first line; its seal follows."""
    record: dict[str, Any] = json.loads(path.read_text().splitlines()[0])
    return record


class Store:
    """The service's database, read without its code."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def until_over(self, *roots: str) -> None:
        """Wait for the trees without an event loop: waking one takes longer than the query."""
        for root in roots:
            while self._is_open(root):
                time.sleep(PAUSE)

    def _is_open(self, root: str) -> bool:
        state, ended_at = self._one("SELECT state, ended_at FROM tasks WHERE root_job_id = ?", root)
        return state == "open" and ended_at is None

    def check(self, root: str) -> None:
        """Check that the tree succeeded."""
        state, reason = self._one("SELECT state, reason FROM tasks WHERE root_job_id = ?", root)
        assert state == "done", f"{root}: {state}: {reason}"

    def jobs(self, root: str) -> int:
        return int(self._one("SELECT count(*) FROM jobs WHERE root_job_id = ? AND state = 'succeeded'", root)[0])

    def times(self, root: str) -> dict[str, float]:
        """Return when the stations of a tree of one job were passed, from rows and its run's files."""
        opened, recorded, folder = self._one(
            "SELECT started_at, ended_at, run_dir FROM attempts WHERE job_id = ?", root
        )
        run_dir = Path(folder)
        end = _record(run_dir / "exit.json")
        return {
            "run opened": opened,
            "worktree and prompt made": (run_dir / "prompt").stat().st_mtime,
            "supervisor claimed": _record(run_dir / "claim")["at"],
            "agent started": end["started_at"],
            "agent has printed": (run_dir / "stdout.log").stat().st_mtime,
            "nothing of it is left": end["ended_at"],
            "end published": (run_dir / "exit.json").stat().st_ctime,
            "outcome recorded": recorded,
            "task over": self._one("SELECT ended_at FROM tasks WHERE root_job_id = ?", root)[0],
        }

    def _one(self, query: str, *values: str) -> Any:
        return self._connection.execute(query, values).fetchone()


class Player:
    """The client."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = Store(service.home.store)

    async def tree(self, legs: int) -> dict[str, Any]:
        """Time a coordinator, so many legs, and a continuation."""
        began = time.perf_counter()
        root = await self._start(f"lead-{legs}")
        self._store.until_over(root)
        seconds = time.perf_counter() - began
        self._store.check(root)
        assert self._store.jobs(root) == legs + 2, f"{root} has other jobs than it should"
        return {"seconds": seconds}

    async def stations(self) -> dict[str, Any]:
        """Return the times of one ask's stations, from its start to its end in the store."""
        posted = time.time()
        root = await self._start("dev")
        returned = time.time()
        self._store.until_over(root)
        seen = time.time()
        self._store.check(root)
        times = self._store.times(root) | {"seen in the store": seen, "start returned": returned}
        return {name: at - posted for name, at in times.items()}

    async def burst(self, count: int) -> dict[str, Any]:
        """Time asks, all at once."""
        began = time.perf_counter()
        roots = await asyncio.gather(*(self._start("dev") for _ in range(count)))
        started = time.perf_counter() - began
        self._store.until_over(*roots)
        seconds = time.perf_counter() - began
        for root in roots:
            self._store.check(root)
        return {"seconds": seconds, "started": started}

    async def _start(self, agent: str) -> str:
        return await new_jobs.start(self._service, NewJob(agent, "ask", "reach the goal", REPO))


async def main() -> None:
    assert Path(new_jobs.__file__).is_relative_to(os.environ["PYTHONPATH"]), "another revision's code was imported"
    player = Player(Service.locate())
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        answer = await getattr(player, order.pop("do"))(**order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)
