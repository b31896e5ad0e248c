"""Starvation of a part: of processor time, of memory, of the interpreter's lock, or stopped as a whole."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from activities.runs.os_processes import descendants, identity, is_stopped
from tests.chaos.faults.base import Base
from tests.chaos.faults.kills import AT_STATION, OF_JOBS, OF_SUPERVISORS, RUNS
from tests.chaos.protocol import GO, Arrival, NotLandedError
from tests.starved import Group, made
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

FROZEN = 45.0
"""Seconds; longer than an activity's heartbeat may be missed, shorter than the daemon's patience with a member."""
STOPPING = 5.0
STARVED = 60.0
PERCENT = 3
SLEEPS = ("230", "35", "115", "101")
"""The numbers of `clock_nanosleep` and `nanosleep`, on x86 and on ARM."""
UNLIMITED = 1 << 40
BEAT = 1.0
"""Seconds of one turn of a process that is stopped and continued by turns."""
ROOM = 1 << 18
"""Bytes that a part may use more than it uses already."""
MEMBERS = ("server", "worker", "bridge")
OF_WORKER = ("fork_server", "helper")
"""Parts that the worker kills and starts anew if they do not answer."""


@dataclass
class Freeze(Base):
    """Stop a part by SIGSTOP for longer than a heartbeat, then continue it."""

    part: str
    seconds: float = FROZEN
    _frozen: dict[int, str | None] = field(default_factory=dict)
    _at: float = 0.0
    _seen: str = ""

    @property
    def name(self) -> str:
        return f"freeze {self.part}"

    def fits(self, station: str) -> bool:
        return station in {"agent": (RUNS,), "supervisor": OF_SUPERVISORS}.get(self.part, (station,))

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        for pid in _pids(stack, self.part, arrival):
            self._frozen[pid] = identity(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        with contextlib.suppress(AssertionError):  # a shell that waits in the kernel for its child stops after it
            wait_for(self._all_stand_still, "", STOPPING)
            if self.part in OF_WORKER and self._frozen:
                self._seen = f"{self.part} {', '.join(map(str, self._frozen))} stopped until it was replaced"
        self._at = time.monotonic()
        return GO

    def lift(self, stack: "Stack") -> None:
        lasted = time.monotonic() - self._at
        alive = [pid for pid, known in self._frozen.items() if identity(pid) == known]
        stopped = [pid for pid in alive if is_stopped(pid)]
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if stopped:
            self._seen = f"{self.part} {', '.join(map(str, stopped))} stopped for {lasted:.0f} s"

    def _all_stand_still(self) -> bool:
        return all(identity(pid) != known or is_stopped(pid) for pid, known in self._frozen.items())

    def proof(self, stack: "Stack") -> str:
        if not self._seen:
            raise NotLandedError(f"no process of {self.part} was stopped until the end of the fault")
        return self._seen


@dataclass
class Starve(Base):
    """Give a part and its children 3 % of a core: by a control group, else by stopping and continuing it by turns."""

    part: str
    seconds: float = STARVED
    _group: Group | None = None
    _turns: "_Turns | None" = None
    _seen: str = ""

    @property
    def name(self) -> str:
        return f"starve {self.part}"

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        pids = _with_children(_pids(stack, self.part, arrival))
        self._group = made("cpu", PERCENT)
        if self._group is None:
            self._turns = _Turns(pids)
        else:
            for pid in pids:
                self._group.enter(pid)
        return GO

    def lift(self, stack: "Stack") -> None:
        if self._group is not None:
            self._seen = f"{held} times out of its share" if (held := self._group.held_up) else ""
            self._group.close()
        if self._turns is not None:
            self._seen = f"{self._turns.end()} times stopped for most of a second"

    def proof(self, stack: "Stack") -> str:
        if not self._seen:
            raise NotLandedError(f"{self.part} was not held up: it wanted no more than its share")
        return f"{self.part} with {PERCENT} % of a core: {self._seen}"


@dataclass
class Crowd(Base):
    """Let a part have next to no more memory than it has: the kernel reclaims, then kills in it."""

    part: str
    needs: frozenset[str] = frozenset({"group"})
    seconds: float = STARVED
    _group: Group | None = None
    _failed: int = 0

    @property
    def name(self) -> str:
        return f"crowd {self.part}"

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        pids = _pids(stack, self.part, arrival)  # without its children: a killed agent ends otherwise
        self._group = made("memory", UNLIMITED)
        if self._group is not None:
            for pid in pids:
                self._group.enter(pid)
            self._group.leave_room(ROOM)
        return GO

    def lift(self, stack: "Stack") -> None:
        if self._group is not None:
            self._failed = self._group.held_up
            self._group.close()

    def proof(self, stack: "Stack") -> str:
        if not self._failed:
            raise NotLandedError(f"{self.part} wanted no more memory than it had")
        return f"{self.part} was refused memory {self._failed} times"


@dataclass
class Hold(Base):
    """Hold the interpreter's lock of the process that has come to the station, longer than the SDK lets a step last."""

    seconds: float = 4.0
    name: str = "hold the interpreter's lock"
    _sleeps: tuple[str, str] = ("", "")
    """The thread that holds it, as the kernel saw it after a second and at the end."""

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        thread = Path(f"/proc/{arrival.pid}/task/{arrival.thread}")
        threading.Thread(target=self._look, args=(thread,), daemon=True).start()
        return f"hold {self.seconds:g}"

    def _look(self, thread: Path) -> None:
        """Compare what the thread does a second after the strike, and a second before its end."""
        looks = []
        for pause in (1.0, self.seconds - 2.0):
            time.sleep(pause)
            with contextlib.suppress(OSError):
                looks.append(f"{(thread / 'syscall').read_text()} {_switches(thread)}")
        self._sleeps = (looks[0], looks[-1]) if len(looks) == 2 else ("", "")

    def proof(self, stack: "Stack") -> str:
        first, last = self._sleeps
        if first != last or first.partition(" ")[0] not in SLEEPS:
            raise NotLandedError("the thread at the station did not sleep with the lock")
        return f"the thread at the station slept with the interpreter's lock for {self.seconds:g} s"


class _Turns:
    """Stops and continues processes by turns, so that they run for 3 % of the time."""

    def __init__(self, pids: list[int]) -> None:
        self._pids, self._over, self._stops = {pid: identity(pid) for pid in pids}, threading.Event(), 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """Continue them for good; return how often they were seen stopped."""
        self._over.set()
        self._thread.join()
        return self._stops

    def _run(self) -> None:
        while not self._over.is_set():
            self._send(signal.SIGSTOP)
            self._over.wait(BEAT * (1 - PERCENT / 100))
            self._stops += any(is_stopped(pid) for pid in self._pids)
            self._send(signal.SIGCONT)
            self._over.wait(BEAT * PERCENT / 100)

    def _send(self, number: int) -> None:
        for pid, known in self._pids.items():
            if identity(pid) == known:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)


def _pids(stack: "Stack", part: str, arrival: Arrival) -> list[int]:
    """Return the processes of a part: a member of the daemon, a helper, those of the job that arrived."""
    if part in (AT_STATION, "supervisor"):
        return [arrival.pid]
    if part in OF_JOBS:
        return stack.pids(part, arrival.subject)
    if part in OF_WORKER:
        return stack.pids(part)
    return [pid for pid in [stack.pid(part)] if pid]


def _with_children(pids: list[int]) -> list[int]:
    return [*pids, *(child for pid in pids for child in descendants(pid))]


def _switches(thread: Path) -> str:
    """Return how often a thread gave up its processor by itself."""
    rows = (thread / "status").read_text().splitlines()
    return next(row for row in rows if row.startswith("voluntary_ctxt_switches"))


FAULTS = (
    *(partial(Freeze, part) for part in (*MEMBERS, *OF_WORKER, *OF_JOBS)),
    *(partial(Starve, part) for part in (*MEMBERS, "daemon")),
    *(partial(Crowd, part) for part in ("server", "worker")),  # a bridge hardly ever wants more memory than it has
    Hold,
)
