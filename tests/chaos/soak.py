"""`python -m tests.chaos.soak --trees 2000 --every 20`: many small trees while parts of the service are killed.

It stops by itself, prints a sample of memory, handles, files and rows now and then, and writes its report to
`soak.json`, which the page of promises shows.
"""

import argparse
import json
import os
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from activities.settings.home import Home
from activities.store import event_rows
from tests import guard
from tests.chaos import checks
from tests.chaos.cases import Case, reaches
from tests.chaos.faults.kills import Kill
from tests.chaos.faults.none import NoFault
from tests.chaos.play import Play
from tests.chaos.protocol import Arrival, NotLandedError
from tests.chaos.scorecard import SOAK, commit, of_soak, today
from tests.chaos.stack import Stack, stack
from tests.chaos.workloads import WORKLOADS

PARTS = ("worker", "fork_server", "server", "helper", "bridge")
"""What is killed in turn."""
MEMBERS = ("daemon", "server", "worker", "bridge")
SAMPLES = 30
LAST = 40
"""The latest trees, whose workflows and screens are looked at once more at the end."""
GROWS = 1.25
"""How much more the last third of the time may have of anything than the middle third."""
MEGABYTE = 1 << 20


@dataclass
class Soak:
    """A soak under way."""

    stack: Stack
    every: float
    until: float
    names: Sequence[str] = ()
    """The workloads that are played in turn."""
    plays: list[Play] = field(default_factory=list)
    """The trees that are over."""
    wrong: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    samples: list[dict[str, float]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def tree(self, number: int) -> None:
        """Play one tree to its end; nothing if the time is over."""
        if time.monotonic() > self.until:
            return
        play = Play(self.stack, Case(self.names[number % len(self.names)], "none", 1, NoFault.name), f"case-{number}s")
        play.run()
        failures = play.failures or self._failures(play)
        self.wrong += [f"{play.case.workload} {play.root}: {failure}" for failure in failures]
        if failures:
            events = event_rows.of_tree(self.stack.service.seen.store, play.root)
            print(
                *failures, *(f"{event.at:.1f} {event.kind}: {event.message}" for event in events), sep="\n", flush=True
            )
        self.plays.append(play)

    def _failures(self, play: Play) -> list[str]:
        """Return what stays wrong with a tree: the next kill may come while a screen is looked at."""
        for _ in PARTS:
            self.stack.until_well()
            failures = list(checks.of_play(play))
            if not failures:
                return []
            time.sleep(self.every / 2)
        return failures

    def kill(self) -> None:
        """Kill a part again and again until all is over."""
        for part in cycle(PARTS):
            if self.over.wait(self.every):
                return
            fault = Kill(part)
            self.stack.trouble()
            fault.strike(self.stack, Arrival("soak", "", 0, 0, time.time()))
            time.sleep(1)
            with suppress(NotLandedError):
                fault.proof(self.stack)
                self.kills[part] += 1

    def watch(self, seconds: float) -> None:
        """Take samples until all is over."""
        while not self.over.wait(seconds):
            self.stack.until_well()
            with suppress(OSError, sqlite3.Error):
                self.samples.append(sample(self.stack, len(self.plays)))
                print(json.dumps(self.samples[-1]), flush=True)


def sample(there: Stack, trees: int) -> dict[str, float]:
    """Measure what the service has of memory, handles, processes, files and rows."""
    measured: dict[str, float] = {"trees": trees}
    for name in MEMBERS:
        process = Path(f"/proc/{there.pid(name)}")
        pages = int((process / "statm").read_text().split()[1])
        measured[f"{name} MB"] = round(pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE, 1)
        measured[f"{name} handles"] = len(os.listdir(process / "fd"))
    measured["helpers"] = len(there.pids("helper"))
    per = max(trees, 1)
    measured["files per tree"] = round(sum(len(files) for _, _, files in os.walk(there.home)) / per, 1)
    with closing(sqlite3.connect(f"file:{Home(there.home).store}?mode=ro", uri=True, timeout=30)) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = sum(store.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables)
        measured["rows per tree"] = round(rows / per, 1)
    return measured


def grown(samples: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Return the most that the middle third of the samples has of each thing, and the last third."""
    if (third := len(samples) // 3) == 0:
        return {}
    middle, last = samples[third : 2 * third], samples[2 * third :]
    names = [name for name in samples[-1] if name != "trees"]
    return {name: (max(one[name] for one in middle), max(one[name] for one in last)) for name in names}


@contextmanager
def beside(*works: Any) -> Iterator[None]:
    """Do works in threads of their own; they end by themselves."""
    threads = [threading.Thread(target=work, args=words, daemon=True) for work, *words in works]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def soak(there: Stack, trees: int, every: float, minutes: float, most: int, names: Sequence[str]) -> dict[str, Any]:
    """Play trees, `most` at a time, with a kill `every` so many seconds; return the report."""
    began = time.monotonic()
    run = Soak(there, every, began + minutes * 60, names)
    kept = threading.Event()
    with beside((there.keep_well, kept)):
        with beside((run.kill,), (run.watch, minutes * 60 / SAMPLES)):
            threads = ThreadPoolExecutor(most)
            try:
                list(threads.map(run.tree, range(trees)))
            finally:
                run.over.set()
                threads.shutdown(wait=False, cancel_futures=True)
        there.until_well()
        run.wrong += checks.of_stack(there, run.plays[-LAST:])
        kept.set()
    return {
        "date": today(),
        "commit": commit(),
        "minutes": round((time.monotonic() - began) / 60),
        "every": every,
        "trees": len(run.plays),
        "kills": dict(run.kills),
        "wrong": run.wrong,
        "grown": grown(run.samples),
    }


def main() -> int:
    guard.begin()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("--every", type=float, default=20.0, help="seconds from one kill to the next")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--beside", type=int, default=8, help="how many trees are under way at once")
    of_one_host = sorted(name for name in reaches() if not WORKLOADS[name].needs)
    parser.add_argument("--workloads", nargs="+", default=of_one_host, help="what is played in turn")
    asked = parser.parse_args()
    with stack() as there:
        report = soak(there, asked.trees, asked.every, asked.minutes, asked.beside, asked.workloads)
    SOAK.write_text(json.dumps(report, indent=1) + "\n")
    print(of_soak(report))
    flat = all(last <= GROWS * middle for middle, last in report["grown"].values())
    return 0 if flat and not report["wrong"] else 1


if __name__ == "__main__":
    sys.exit(main())
