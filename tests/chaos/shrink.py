"""The shortest script of a failure: fewer faults, smaller trees, earlier arrivals, as long as it still fails."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.chaos.cases import Case, reaches
from tests.chaos.workloads import WORKLOADS

Script = tuple[Case, ...]
"""Cases that are played beside each other."""


def read(words: str) -> Script:
    """Read cases that are separated by semicolons."""
    return tuple(Case.read(case) for case in words.split(";"))


def shortest(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Return a script that fails while none that is one step simpler does; the given one if it doesn't fail."""
    return next((shortest(simpler, fails) for simpler in simpler_than(script) if fails(simpler)), script)


def simpler_than(script: Script) -> Iterator[Script]:
    """Yield scripts that are one step simpler, those first by which most is gained."""
    if len(script) > 2:
        yield from ((case,) for case in script)
    if len(script) > 1:
        yield from (script[:place] + script[place + 1 :] for place in range(len(script)))
    for place, case in enumerate(script):
        for less in (*_smaller_trees(case), *_earlier(case)):
            yield (*script[:place], less, *script[place + 1 :])


def _smaller_trees(case: Case) -> Iterator[Case]:
    def jobs(name: str) -> int:
        return len(WORKLOADS[name].states)

    there = [name for name, counts in reaches().items() if counts.get(case.station, 0) >= case.nth]
    for name in sorted(there, key=jobs):
        if jobs(name) < jobs(case.workload):
            yield replace(case, workload=name)


def _earlier(case: Case) -> Iterator[Case]:
    return (replace(case, nth=nth) for nth in range(1, case.nth))
