"""`python -m tests.chaos --seed 7`: play the case of a seed; `--cases 1000 --minutes 60` plays many."""

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests import guard
from tests.chaos import cases, rounds, scorecard, shrink
from tests.chaos.cases import REACHES, Case
from tests.chaos.controller import STARTED
from tests.chaos.faults.injector import GIVEN, Injected
from tests.chaos.faults.none import NoFault
from tests.chaos.rounds import Outcome
from tests.chaos.shrink import Script
from tests.chaos.stack import Kind, Stack, stack
from tests.chaos.workloads import WORKLOADS

AGAIN = 4
"""How often a case is played again whose fault found nothing to strike."""
TRIES = 3
"""How often a script is played that might fail."""
PROFILES = 6
"""How often each workload is played for its profile. A station that two of these plays miss is left out."""


def profile() -> None:
    """Write how often each workload surely reaches each station, with no fault at all."""
    played = defaultdict[str, list[Counter[str]]](list)
    unharmed = [Case(name, "none", 1, NoFault.name) for name in WORKLOADS]
    for kind in {Kind.that_has(case.needs) for case in unharmed}:
        waiting = [case for case in unharmed if Kind.that_has(case.needs) is kind] * PROFILES
        with stack(kind) as there:
            while waiting:
                for outcome in rounds.play(there, rounds.beside(waiting, len(WORKLOADS))):
                    played[outcome.case.workload].append(there.controller.counts(outcome.root))
                    print(outcome.case, outcome.failures or "well", f"{outcome.seconds:.1f} s")
    known = {name: _surely_reached(plays) for name, plays in played.items()}
    REACHES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def _surely_reached(plays: list[Counter[str]]) -> dict[str, int]:
    """Return how often each station is reached at least, of those that at most one play misses: on a busy machine a
    play may take another way.
    """
    stations = {station for counts in plays for station in counts}
    reached = {station: [counts[station] for counts in plays if station in counts] for station in stations}
    return {station: min(numbers) for station, numbers in reached.items() if len(numbers) >= len(plays) - 1}


def interrupted(number: int, frame: FrameType | None) -> None:
    """End on the first Ctrl-C; a further one does not disturb the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    guard.begin()
    signal.signal(signal.SIGINT, interrupted)
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--profile", action="store_true", help="write anew which stations each workload reaches")
    parser.add_argument("--seed", type=int, nargs="+", default=[], help="play the cases of these seeds")
    parser.add_argument("--case", help="`workload, station, nth, fault`")
    parser.add_argument("--cases", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--beside", type=int, default=8, help="how many cases are under way at once on a stack")
    parser.add_argument(
        "--stacks",
        type=int,
        default=1,
        help="how many plain stacks are played on at once, and half as many of each other kind",
    )
    parser.add_argument("--played", type=Path, metavar="FILE", help="leave out the seeds of the outcomes in a file")
    parser.add_argument(
        "--injected", type=int, metavar="TIMES", help="play each workload on the server of SERVICE_TEST_TEMPORAL"
    )
    parser.add_argument("--shrink", metavar="CASES", help="find the shortest script of a failure: `case; case; ...`")
    parser.add_argument("--scorecard", type=Path, metavar="FILE", help="make the page of the outcomes in a file")
    asked = parser.parse_args()
    if asked.scorecard:
        scorecard.write(asked.scorecard)
        return 0
    if asked.profile:
        profile()
        return 0
    played = {json.loads(line)["seed"] for line in asked.played.read_text().splitlines()} if asked.played else set()
    seeds = asked.seed or range(asked.first, asked.first + asked.cases)
    drawn = [cases.draw(seed) for seed in seeds if seed not in played]
    if asked.case:
        drawn = [Case.read(asked.case)]
    if asked.injected:
        if GIVEN not in os.environ:
            parser.error(f"{GIVEN} names no server; tests/chaos/temporal.yaml says how to start one")
        there = [name for name, counts in cases.reaches().items() if STARTED in counts and not WORKLOADS[name].needs]
        drawn = [Case(name, STARTED, 1, Injected.name) for name in there] * asked.injected
    if asked.shrink:
        print("; ".join(map(str, shrink.shortest(shrink.read(asked.shrink), fails))))
        return 0
    return 1 if play(drawn, asked.stacks, asked.beside, time.monotonic() + asked.minutes * 60) else 0


def play(drawn: list[Case], stacks: int, most: int, until: float) -> int:
    """Play cases on several stacks at once, of each kind that is needed, as many as its cases keep busy."""
    queues = {kind: Queue([case for case in drawn if Kind.that_has(case.needs) is kind], most, until) for kind in Kind}
    half = (stacks + 1) // 2
    numbers = {Kind.PLAIN: stacks, Kind.DISK: half, Kind.ELSEWHERE: half, Kind.FLEET: half}
    kinds = [kind for kind, number in numbers.items() for _ in range(number) if queues[kind].waiting]
    threads, starts = ThreadPoolExecutor(max(1, len(kinds))), threading.Lock()
    with contextlib.ExitStack() as made:
        try:
            list(threads.map(lambda kind: queues[kind].play(kind, made, starts), kinds))
        finally:  # after an interrupt a stack may be starting, and a round last for minutes
            for queue in queues.values():
                queue.waiting.clear()
            starts.acquire()
            threads.shutdown(wait=False)
    return sum(queue.failed for queue in queues.values())


def fails(script: Script) -> bool:
    """Play cases beside each other on a stack of their own; return whether one of them fails, in a few tries."""
    with stack(Kind.that_has({need for case in script for need in case.needs})) as there:
        for _ in range(TRIES):
            outcomes = rounds.play(there, script)
            failed = [outcome for outcome in outcomes if outcome.failures and not outcome.missed]
            for outcome in failed:
                print(f"{outcome.case}: {outcome.failures[0]}", file=sys.stderr, flush=True)
            if failed:
                return True
    return False


@dataclass
class Queue:
    """Cases that wait for a round on one of the stacks of their kind."""

    waiting: list[Case]
    most: int
    until: float
    failed: int = 0
    again: Counter[Case] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def play(self, kind: Kind, made: contextlib.ExitStack, starts: threading.Lock) -> None:
        """Play until no case waits or the time is over; after a round that broke a stack, on another one."""
        while True:
            with starts:
                if not self.waiting or time.monotonic() > self.until:
                    return
                there = made.enter_context(stack(kind))
            self._play_on(there)

    def _play_on(self, there: Stack) -> None:
        while now := self._next(there):
            began = time.monotonic()
            try:
                outcomes = rounds.play(there, now)
            except Exception as error:
                failures = "the stack is not well", f"{type(error).__name__}: {error}"
                self._tell(there, [Outcome(case, "", "", failures, time.monotonic() - began) for case in now])
                return
            self._tell(there, outcomes)
            print(f"{len(now)} cases in {time.monotonic() - began:.1f} s\n", end="", file=sys.stderr, flush=True)

    def _next(self, there: Stack) -> list[Case]:
        """Take the cases of a round from those that wait."""
        with self._lock:
            for case in [case for case in self.waiting if not case.needs <= there.able]:
                self.waiting.remove(case)
                print(f"left out: {case}: it needs {', '.join(case.needs - there.able)}", file=sys.stderr)
            return rounds.beside(self.waiting, self.most) if time.monotonic() < self.until else []

    def _tell(self, there: Stack, outcomes: Sequence[Outcome]) -> None:
        """Print what came of cases; a case whose fault found nothing to strike waits once more."""
        if there.ended:  # by an interrupt
            return
        with self._lock:
            for outcome in outcomes:
                if outcome.missed and self.again[outcome.case] < AGAIN:
                    self.again[outcome.case] += 1
                    self.waiting.append(outcome.case)
                    continue
                self.failed += bool(outcome.failures)
                print(f"{json.dumps(outcome.as_row())}\n", end="", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # without waiting for the threads of cases under way
