"""A stack of next to nothing, for the test of a fault: a process, a folder, a line."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.chaos.faults.disk import Disk
from tests.chaos.model import Model
from tests.chaos.protocol import Arrival, NotLandedError
from tests.fleet.lines import Line
from tests.postgres import Postgres

if TYPE_CHECKING:
    from tests.chaos.stack import Stack


@dataclass
class Tiny:
    """What faults ask of a stack."""

    folder: Path
    process: int = 0
    """The pid that every part has."""
    lines: dict[str, Line] = field(default_factory=dict)
    disk: Disk | None = None
    database: Postgres | None = None
    model: Model | None = None

    @property
    def home(self) -> Path:
        return self.folder

    @property
    def plans(self) -> Path:
        return self.folder

    @property
    def hub(self) -> Path:
        return self.folder / "hub.git"

    @property
    def postgres(self) -> Postgres:
        assert self.database is not None
        return self.database

    def take_over(self, server: Postgres) -> None:
        self.database = server
        self.lines["store"].target = ("127.0.0.1", server.port)

    def pid(self, part: str) -> int:
        return self.process

    def pids(self, part: str, subject: str = "") -> list[int]:
        return [self.process]

    @property
    def stack(self) -> "Stack":
        return cast("Stack", self)

    def play(self, fault: Any, meanwhile: Callable[[], object] = lambda: None, thread: int = 0) -> str:
        """Let a fault strike, and lift it; return its proof."""
        stack, arrival = self.stack, Arrival("here", "job", self.process, 1, time.time(), thread)
        fault.strike(stack, arrival)
        try:
            meanwhile()
        finally:
            fault.lift(stack)
        return str(fault.proof(stack))

    def misses(self, fault: Any, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Let a fault strike where it can have no effect, and check that it has no proof."""
        with pytest.raises(NotLandedError):
            self.play(fault, meanwhile)

    def is_unproven(self, fault: Any) -> None:
        """Check that a fault that never struck has no proof, and that its lift does no harm."""
        fault.lift(self.stack)
        with pytest.raises(NotLandedError):
            fault.proof(self.stack)


@contextmanager
def python(code: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python code in a process of its own during the context; it goes on when a line is written to it."""
    command = [sys.executable, "-u", "-c", code, *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
