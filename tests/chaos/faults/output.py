"""Hostile output: an agent that prints a line of 3 MB, of 40 MB, a million lines, or garbage before its answer."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from activities.runs.run_folders import key_of
from tests.chaos.faults.base import Base
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

FLOODS = {
    "a line of 3 MB": "head -c 3000000 /dev/zero | tr '\\0' x; echo",
    "a line of 40 MB": "head -c 40000000 /dev/zero | tr '\\0' x; echo",
    "a million lines": "seq 1000000",
    "garbage": "head -c 3000000 /dev/urandom; echo",
}
STARTS = "program to be started"
BEFORE = ("claim written", "folder made", "folder recorded", STARTS)
"""Stations of a job before its program."""


@dataclass
class Flood(Base):
    """The agent of the job prints what no agent should, and then answers as ever."""

    what: str
    needs: frozenset[str] = frozenset({"script"})
    _done: Path | None = None

    @property
    def name(self) -> str:
        return f"print {self.what}"

    def fits(self, station: str) -> bool:
        return station in BEFORE

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        run = key_of(arrival.subject) if arrival.station == STARTS else None  # there, the subject is a run's folder
        order = stack.plans / f"{run[0] if run else arrival.subject}.flood"
        self._done = order.with_suffix(".flooded")
        order.write_text(f"{FLOODS[self.what]}\nrm '{order}'; echo > '{self._done}'\n")
        return GO

    def proof(self, stack: "Stack") -> str:
        if self._done is None or not self._done.exists():
            raise NotLandedError("no agent of this job printed it")
        return f"an agent printed {self.what}"


FAULTS = tuple(partial(Flood, what) for what in FLOODS)
