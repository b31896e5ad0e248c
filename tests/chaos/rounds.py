"""Rounds: cases that are played beside each other on one stack, and what came of each."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count

from tests.chaos import checks
from tests.chaos.cases import Case
from tests.chaos.controller import subject_of
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
    def missed(self) -> bool:
        """True if all went well but that the fault found nothing to strike: its case is played once more."""
        return not self.proof and len(self.failures) == 1

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
    for left in checks.of_stack(stack, plays):
        named = [one for one in plays if one.root and subject_of(one.root) == subject_of(left)]
        for one in named or plays:
            one.failures.append(left)
    return [Outcome(one.case, one.root, one.proof, tuple(one.failures), one.took) for one in plays]
