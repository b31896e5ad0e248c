"""kill -9 of a part of the service, at a station, and SIGSTOP of the process that has come to it."""

import contextlib
import os
import signal
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from activities.runs.os_processes import identity
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

AT_STATION = "whoever is there"
OF_JOBS = ("supervisor", "agent")
"""Parts of which each job has its own."""
OF_SUPERVISORS = ("run claimed", "command started", "command ended", "end recorded")
DESK = "github"
TOLD = "fact written"
"""The station at which a fact is on GitHub, and not yet recorded."""
RUNS = "command started"
"""The one station at which a job's agent is known to be there."""


@dataclass
class Kill:
    """Kill a part with -9: a member of the daemon, a process of the worker, or whoever has come to the station."""

    part: str
    needs: frozenset[str] = frozenset()
    seconds: float = 0.0
    alone: bool = False
    _killed: dict[int, str | None] = field(default_factory=dict)
    """The killed processes, with the marks by which each is told from a later one of its number."""

    @property
    def name(self) -> str:
        return f"kill {self.part}"

    def harms(self, station: str) -> bool:
        return self.part in OF_JOBS or (self.part == AT_STATION and station in OF_SUPERVISORS)

    def fits(self, station: str) -> bool:
        if self.part == DESK:
            return station.startswith(TOLD)
        return station in {"agent": (RUNS,), "supervisor": OF_SUPERVISORS}.get(self.part, (station,))

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        for pid in self._pids(stack, arrival):
            self._killed[pid] = identity(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return GO

    def _pids(self, stack: "Stack", arrival: Arrival) -> list[int]:
        if self.part in (AT_STATION, "supervisor"):
            return [arrival.pid]
        if self.part in ("fork_server", "helper"):
            return stack.pids(self.part)
        if self.part == "agent":
            return stack.pids(self.part, arrival.subject)
        return [pid for pid in [stack.pid(self.part)] if pid]

    def proof(self, stack: "Stack") -> str:
        if not self._killed:
            raise NotLandedError(f"there was no {self.part} to kill")
        if alive := [pid for pid, mark in self._killed.items() if mark is None or identity(pid) == mark]:
            raise NotLandedError(f"{self.part} {alive} lives on, or was gone before")
        return f"{self.part} {', '.join(map(str, self._killed))} died by SIGKILL"

    def lift(self, stack: "Stack") -> None:
        """Do nothing: the daemon starts its members again, and the worker its own."""


PARTS = (AT_STATION, "server", "worker", "bridge", "fork_server", "helper", DESK, *OF_JOBS)
FAULTS = tuple(partial(Kill, part) for part in PARTS)
