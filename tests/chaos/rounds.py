"""Rounds: cases that are played beside each other on one stack, and what came of each."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count

from tests.chaos import checks
from tests.chaos.cases import Case
from tests.chaos.play import Play
from tests.chaos.stack import Stack

_numbers = count(1)


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: Case
    root: str
    proof: str
    failures: tuple[str, ...]
    seconds: float

    @property
    def landed(self) -> bool:
        return bool(self.proof)

    def as_row(self) -> dict[str, object]:
        return asdict(self.case) | {
            "proof": self.proof,
            "failures": list(self.failures),
            "seconds": round(self.seconds, 1),
        }


def play(stack: Stack, cases: Sequence[Case]) -> list[Outcome]:
    """Play cases beside each other to their ends, and check them and what they left."""
    plays = [Play(stack, case, f"case-{next(_numbers)}x") for case in cases]
    over = threading.Event()
    watch = threading.Thread(target=stack.keep_well, args=(over,), daemon=True)
    watch.start()
    try:
        with ThreadPoolExecutor(len(plays)) as threads:
            list(threads.map(Play.run, plays))
        while time.time() < max(one.struck_at + one.fault.seconds for one in plays):
            time.sleep(0.1)
        stack.until_well()
    finally:
        over.set()
        watch.join()
    for one in plays:
        one.prove()
        if not one.failures:
            one.failures += checks.of_play(one)
    common = list(checks.of_stack(stack, plays))
    return [Outcome(one.case, one.root, one.proof, (*one.failures, *common), one.took) for one in plays]
