"""A clock that jumps by an hour or a day: a part is started again under libfaketime."""

import os
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from activities.runs.os_processes import environment_of, identity
from tests.chaos.faults.base import Base
from tests.chaos.hook import CLOCK
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

HOUR, DAY = 3600, 86_400
LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
MODULES = {"worker": "activities", "bridge": "bridge.http"}


@dataclass
class Jump(Base):
    """The clock of a part jumps: it is killed, and starts again with another clock; at the end once more."""

    part: str
    jump: int
    needs: frozenset[str] = frozenset({"faketime"})
    seconds: float = 40.0
    within: float = 30.0
    """Seconds within which the part has started again at the latest."""
    _seen: str = ""

    @property
    def name(self) -> str:
        unit, size = ("day", DAY) if abs(self.jump) >= DAY else ("hour", HOUR)
        return f"clock of {self.part} {self.jump // size:+} {unit}"

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        (stack.folder / CLOCK).write_text(f"{MODULES[self.part]} {self.jump} {LIBRARIES[0]}")
        self._kill(stack)
        return GO

    def _kill(self, stack: "Stack") -> None:
        if pid := stack.pid(self.part):
            os.kill(pid, signal.SIGKILL)

    def lift(self, stack: "Stack") -> None:
        until = time.monotonic() + (self.within if (stack.folder / CLOCK).exists() else 0)
        while not self._wrong(stack) and time.monotonic() < until:
            time.sleep(0.1)
        (stack.folder / CLOCK).unlink(missing_ok=True)
        if self._wrong(stack):
            self._seen = f"{self.part} {stack.pid(self.part)} ran with a clock of {self.jump:+} s"
            self._kill(stack)

    def _wrong(self, stack: "Stack") -> bool:
        pid = stack.pid(self.part)
        return bool(pid and identity(pid) and environment_of(pid).get("FAKETIME") == f"{self.jump:+}s")

    def proof(self, stack: "Stack") -> str:
        if not self._seen:
            raise NotLandedError(f"{self.part} did not run with another clock")
        return self._seen


FAULTS = tuple(partial(Jump, part, jump) for part in MODULES for jump in (HOUR, -HOUR, DAY, -DAY))
