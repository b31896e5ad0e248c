"""Rounds: cases that are played beside each other on one stack, and what came of each."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count

from sqlalchemy.exc import OperationalError

from activities.store import event_rows
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
    beside: str = ""
    """All cases of the round of a failed case, as `--shrink` takes them."""
    story: tuple[str, ...] = ()
    """The events of a failed case, with the seconds since its fault, or since its start without one."""
    at: float = field(default_factory=time.time)

    @property
    def missed(self) -> bool:
        """True if all went well but that the fault found nothing to strike: its case is played once more."""
        return not self.proof and len(self.failures) == 1

    def as_row(self) -> dict[str, object]:
        return asdict(self.case) | {
            "proof": self.proof,
            "failures": list(self.failures),
            "seconds": round(self.seconds, 1),
            "at": round(self.at),
            "beside": self.beside if self.failures else "",
            "story": list(self.story),
        }


LIFT = 60.0
"""Seconds that the end of a fault may take."""
AWAY = 90.0
"""Seconds that store or disk may be away while a case is looked at."""
ONCE = {"helper", "fork_server"}
"""Two kills of helpers at once are two faults for whoever has work in one: it is replaced once. And while a fork server
is dead, a second kill strikes nothing.
"""
OF_JOBS = {"", "agent", "supervisor"}
"""Parts of which each job has its own."""
PLACES = {"fork_server": "worker", "helper": "worker"}
"""What dies with what."""


def beside(waiting: list[Case], most: int) -> list[Case]:
    """Take from those that wait the cases that may be played beside the first: all faults last, or none does."""
    chosen: list[Case] = []
    for case in list(waiting):
        if len(chosen) < most and not any(_clash(case, other) for other in chosen):
            chosen.append(case)
            waiting.remove(case)
    return chosen


def _clash(case: Case, beside_it: Case) -> bool:
    """Return whether one fault could keep the other from its proof, or both together be too much for a promise."""
    one, other = case.made(), beside_it.made()
    if case.is_alone or beside_it.is_alone or bool(one.seconds) != bool(other.seconds):
        return True
    part, another = (getattr(fault, "part", "") for fault in (one, other))
    if not one.seconds:
        return part == another and part in ONCE
    parts = {PLACES.get(part, part), PLACES.get(another, another)}
    return "daemon" in parts or (len(parts) == 1 and not parts & OF_JOBS)


def play(stack: Stack, cases: Sequence[Case]) -> list[Outcome]:
    """Play cases beside each other to their ends, and check them and what they left."""
    plays = [Play(stack, case, f"case-{next(_numbers)}x") for case in cases]
    over = threading.Event()
    watch = threading.Thread(target=stack.keep_well, args=(over,), daemon=True)
    watch.start()
    threads = ThreadPoolExecutor(len(plays))
    try:
        list(threads.map(Play.run, plays))
        list(threads.map(_check, plays))  # some stations come after a tree's end
        for one in plays:
            one.lifted.wait(one.fault.seconds + LIFT)
        stack.until_well()
        for one in plays:
            one.prove()
        for left in _seen(lambda: checks.of_stack(stack, plays)):
            named = [one for one in plays if one.root and subject_of(one.root) == subject_of(left)]
            for one in named or plays:
                one.failures.append(left)
    finally:
        over.set()
        watch.join()
        threads.shutdown(wait=False, cancel_futures=True)  # after an interrupt they may last for minutes
    beside = "; ".join(map(str, cases))
    return [Outcome(one.case, one.root, one.proof, tuple(one.failures), one.took, beside, _story(one)) for one in plays]


def _check(one: Play) -> None:
    one.stack.until_well()
    if not one.failures:
        one.failures += _seen(lambda: checks.of_play(one))


def _seen(check: Callable[[], Iterable[str]]) -> list[str]:
    """Return what a check finds, though store or disk may be away: a fault of a case beside it may strike late."""
    until = time.monotonic() + AWAY
    while True:
        try:
            return [*check()]
        except (OperationalError, OSError):
            if time.monotonic() > until:
                raise
        time.sleep(1)


def _story(one: Play) -> tuple[str, ...]:
    """Return the events of a failed case, with the seconds since its fault, or since its start without one."""
    if not one.failures or not one.root:
        return ()
    events = event_rows.of_tree(one.stack.service.seen.store, one.root)
    since = one.struck_at or min((event.at for event in events), default=0.0)
    return tuple(f"{event.at - since:+.1f} s {event.kind}: {event.message}"[:300] for event in events)
