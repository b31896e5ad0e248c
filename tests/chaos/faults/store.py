"""Faults of the store: SQLite locked by somebody else; PostgreSQL killed, full, or failed over to a replica."""

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from activities.settings.home import Home
from bridge.machine.ports import is_free
from tests.chaos.faults.base import Base
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

OUTAGE = 20.0
LOCKED = 30.0
PATIENCE = 5.0
"""Seconds to wait for the lock of the store. A writer of the service holds it for milliseconds."""


@dataclass
class Locked(Base):
    """Another program has begun to write to the SQLite store, and does not end."""

    name: str = "store locked"
    part: str = "store"
    needs: frozenset[str] = frozenset({"sqlite"})
    seconds: float = LOCKED
    _other: sqlite3.Connection | None = None
    _refused: str = ""

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        other = sqlite3.connect(Home(stack.home).store, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        self._other = other
        return GO

    def lift(self, stack: "Stack") -> None:
        if self._other is None:
            return
        probe = sqlite3.connect(Home(stack.home).store, timeout=0, isolation_level=None)
        try:
            probe.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            self._refused = str(error)
        probe.close()
        self._other.close()

    def proof(self, stack: "Stack") -> str:
        if not self._refused:
            raise NotLandedError("the store could be written to at the end of the fault")
        return f"a write at the end of the fault: {self._refused}"


@dataclass
class PostgresKilled(Base):
    """PostgreSQL dies by SIGKILL, and starts again at the end."""

    name: str = "kill PostgreSQL"
    part: str = "store"
    needs: frozenset[str] = frozenset({"postgres"})
    seconds: float = OUTAGE
    _died: bool = False

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        stack.postgres.kill()
        self._died = is_free(stack.postgres.port)
        return GO

    def lift(self, stack: "Stack") -> None:
        if self._died:
            stack.postgres.start()

    def proof(self, stack: "Stack") -> str:
        if not self._died:
            raise NotLandedError("PostgreSQL still listened")
        return "nobody listened at PostgreSQL's port"


@dataclass
class PostgresFull(Base):
    """The disk of PostgreSQL is full."""

    name: str = "PostgreSQL full"
    part: str = "store"
    needs: frozenset[str] = frozenset({"postgres", "disk"})
    seconds: float = OUTAGE
    _before: int = 0
    _filled: bool = False

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self._before, self._filled = len(stack.postgres.log), True
        stack.postgres.fill()
        return GO

    def lift(self, stack: "Stack") -> None:
        if self._filled:
            stack.postgres.make_room()

    def proof(self, stack: "Stack") -> str:
        if not (refused := stack.postgres.log[self._before :].count("No space left on device")):
            raise NotLandedError("PostgreSQL refused nothing")
        return f"PostgreSQL refused {refused} writes"


@dataclass
class FailedOver(Base):
    """PostgreSQL dies, and a replica that has all it committed takes its place."""

    name: str = "PostgreSQL fails over"
    part: str = "store"
    needs: frozenset[str] = frozenset({"postgres", "lines"})
    seconds: float = OUTAGE
    _seen: str = ""

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        former, replica = stack.postgres, stack.postgres.replica()
        former.kill()
        replica.promote()
        stack.take_over(replica)
        if is_free(former.port):
            self._seen = f"the server at port {replica.port} took the place of that at {former.port}"
        return GO

    def proof(self, stack: "Stack") -> str:
        if not self._seen:
            raise NotLandedError("the former server still listened")
        return self._seen


FAULTS = (Locked, PostgresKilled, PostgresFull, FailedOver)
