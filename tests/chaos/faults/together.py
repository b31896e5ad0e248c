"""Faults of several parts at once: a whole host dies; a worker dies while whoever has come to the station is frozen."""

import contextlib
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from activities.runs.os_processes import descendants, identity, is_stopped
from tests.chaos.faults.base import Base
from tests.chaos.faults.kills import OF_SUPERVISORS
from tests.chaos.protocol import GO, Arrival, NotLandedError
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

BOOT = 30.0
"""Seconds in which the host has started its daemon again."""
BACK = 45.0
"""Seconds in which a killed worker is back, and has looked for the runs that it had: after a heartbeat was missed."""


@dataclass
class KillHost(Base):
    """Kill the daemon, its members, the worker's processes and all agents at once, as a power cut does."""

    name: str = "kill the host"
    part: str = "daemon"
    seconds: float = BOOT
    alone: bool = True
    _killed: dict[int, str | None] = field(default_factory=dict)

    def harms(self, station: str) -> bool:
        return True

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        daemon = stack.pid("daemon")
        pids = [daemon, *descendants(daemon), *stack.pids("supervisor"), *stack.pids("agent")] if daemon else []
        self._killed = {pid: identity(pid) for pid in pids}
        for pid in pids:
            _send(pid, signal.SIGKILL)
        return GO

    def proof(self, stack: "Stack") -> str:
        if not self._killed or any(known and identity(pid) == known for pid, known in self._killed.items()):
            raise NotLandedError("there was no daemon, or some of its processes live on")
        return f"the daemon and {len(self._killed) - 1} processes with it died by SIGKILL"


@dataclass
class KillFrozen(Base):
    """Kill the worker while the supervisor that has come to the station is frozen: it goes on once the worker is back,
    so whatever it has not written down yet, the new worker cannot know.
    """

    name: str = "kill worker and freeze whoever is there"
    part: str = "worker"
    seconds: float = BACK
    _frozen: tuple[int, str | None] = (0, None)
    _worker: tuple[int, str | None] = (0, None)
    _seen: str = ""

    def fits(self, station: str) -> bool:
        return station in OF_SUPERVISORS

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        worker = stack.pid("worker")
        self._frozen, self._worker = (arrival.pid, identity(arrival.pid)), (worker, identity(worker))
        _send(arrival.pid, signal.SIGSTOP)
        wait_for(lambda: identity(arrival.pid) != self._frozen[1] or is_stopped(arrival.pid))
        if worker:
            _send(worker, signal.SIGKILL)
        return GO

    def lift(self, stack: "Stack") -> None:
        (frozen, known), (worker, was) = self._frozen, self._worker
        if frozen and identity(frozen) == known and is_stopped(frozen):
            if was and identity(worker) != was:
                self._seen = f"worker {worker} died while {frozen} was stopped"
            _send(frozen, signal.SIGCONT)

    def proof(self, stack: "Stack") -> str:
        if not self._seen:
            raise NotLandedError("the worker lives on, or whoever was there went on before")
        return self._seen


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


FAULTS = (KillHost, KillFrozen)
