"""Workflows evicted after every step: the worker starts again without a cache of workflows."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.faults.base import Base
from tests.chaos.hook import UNCACHED
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack


@dataclass
class Evict(Base):
    """From here on each step of a workflow begins with its whole history, whatever its length."""

    name: str = "evict workflows after each step"
    part: str = "worker"
    seconds: float = 40.0
    _seen: str = ""

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        (stack.folder / UNCACHED).write_text("")
        self._kill(stack)
        return GO

    def _kill(self, stack: "Stack") -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(stack.pid("worker") or 1 << 24, signal.SIGKILL)

    def lift(self, stack: "Stack") -> None:
        path = stack.folder / UNCACHED
        if not path.exists():
            return
        until = time.monotonic() + self.seconds
        while str(stack.pid("worker")) not in path.read_text().split() and time.monotonic() < until:
            time.sleep(0.1)
        if str(pid := stack.pid("worker")) in path.read_text().split():
            self._seen = f"worker {pid} ran without a cache of workflows"
        path.unlink()
        self._kill(stack)

    def proof(self, stack: "Stack") -> str:
        if not self._seen:
            raise NotLandedError("the worker did not start again without its cache")
        return self._seen


FAULTS = (Evict,)
