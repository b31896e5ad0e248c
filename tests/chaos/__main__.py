"""`python -m tests.chaos --seed 7`: play the case of a seed; `--cases 1000 --minutes 60` plays many."""

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from tests import guard
from tests.chaos import cases, rounds, scorecard, shrink
from tests.chaos.cases import REACHES, Case
from tests.chaos.faults.none import NoFault
from tests.chaos.shrink import Script
from tests.chaos.stack import Kind, Stack, stack
from tests.chaos.workloads import WORKLOADS

AGAIN = 2
"""How often a case is played again whose fault found nothing to strike."""
TRIES = 3
"""How often a script is played that might fail."""
PROFILES = 3
"""How often each workload is played for its profile: what it reaches only at times is no aim."""


def profile() -> None:
    """Write how often each workload reaches each station, with no fault at all."""
    known: dict[str, Counter[str]] = {}
    with stack() as there:
        for _ in range(PROFILES):
            for outcome in rounds.play(there, [Case(name, "none", 1, NoFault.name) for name in WORKLOADS]):
                name, counts = outcome.case.workload, there.controller.counts(outcome.root)
                known[name] = known.get(name, counts) & counts
                print(outcome.case, outcome.failures or "well", f"{outcome.seconds:.1f} s")
    REACHES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


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
    parser.add_argument("--shrink", metavar="CASES", help="find the shortest script of a failure: `case; case; ...`")
    parser.add_argument("--scorecard", type=Path, metavar="FILE", help="make the page of the outcomes in a file")
    asked = parser.parse_args()
    if asked.scorecard:
        scorecard.write(asked.scorecard)
        return 0
    if asked.profile:
        profile()
        return 0
    drawn = [cases.draw(seed) for seed in range(asked.first, asked.first + asked.cases)]
    if asked.seed:
        drawn = [cases.draw(seed) for seed in asked.seed]
    if asked.case:
        drawn = [Case.read(asked.case)]
    if asked.shrink:
        print("; ".join(map(str, shrink.shortest(shrink.read(asked.shrink), fails))))
        return 0
    until, failed = time.monotonic() + asked.minutes * 60, 0
    for kind in Kind:
        if waiting := [case for case in drawn if Kind.that_has(case.needs) is kind]:
            with stack(kind) as there:
                failed += play(there, waiting, asked.beside, until)
    return 1 if failed else 0


def fails(script: Script) -> bool:
    """Play cases beside each other on a stack of their own; return whether one of them fails, in a few tries."""
    with stack(Kind.that_has({need for case in script for need in case.needs})) as there:
        for _ in range(TRIES):
            outcomes = rounds.play(there, script)
            failed = [outcome for outcome in outcomes if outcome.failures and not outcome.missed]
            print(*(f"{outcome.case}: {outcome.failures[0]}" for outcome in failed), sep="\n", file=sys.stderr)
            if failed:
                return True
    return False


def play(there: Stack, waiting: list[Case], most: int, until: float) -> int:
    """Play cases on a stack that is able to, and print what came of each; return how many failed."""
    failed, again = 0, Counter[Case]()
    for case in [case for case in waiting if not case.needs <= there.able]:
        waiting.remove(case)
        print(f"left out: {case}: it needs {', '.join(case.needs - there.able)}", file=sys.stderr)
    while waiting and time.monotonic() < until:
        now = rounds.beside(waiting, most)
        began = time.monotonic()
        for outcome in rounds.play(there, now):
            if outcome.missed and again[outcome.case] < AGAIN:
                again[outcome.case] += 1
                waiting.append(outcome.case)
                continue
            failed += bool(outcome.failures)
            print(json.dumps(outcome.as_row()), flush=True)
        print(f"{len(now)} cases in {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # without waiting for the threads of cases under way
