"""What a fault is, and what it may ask of the stack that it strikes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

GO = "go"
"""The answer to an arriving process: go on."""


class NotLandedError(AssertionError):
    """A fault that cannot prove that it struck. Its case counts as failed."""


@dataclass(frozen=True)
class Arrival:
    """A process that has come to a station, and waits there for the controller's answer."""

    station: str
    """Its name; for writes of rows with the name of the write after a colon."""
    subject: str
    """The job, tree or run that it is about; a run's folder begins with its job."""
    pid: int
    number: int
    """How many stations this process has come to."""
    at: float
    thread: int = 0
    """The kernel's number of the thread that waits."""


class Fault(Protocol):
    """A fault. An instance is made for one case, and so may keep what it needs for its proof and its lift."""

    name: str
    """As it stands in a case and on the scorecard: `kill worker`, `disk full`."""
    needs: frozenset[str]
    """What of the stack it needs: `lines` (proxies before Temporal and store), `postgres`, `group` (control groups)."""
    seconds: float
    """How long it lasts after its strike, before it is lifted; 0 for one that is over at once, as a kill."""

    alone: bool
    """True if it may harm what else is on the stack: then no other tree is under way there."""

    def harms(self, station: str) -> bool:
        """Return whether the job at this station may end otherwise than without it, as when its agent is killed. Then
        only what its record says of it is checked: it agrees with the marks, and a person can move it on.
        """
        ...

    def fits(self, station: str) -> bool:
        """Return whether it makes sense at a station: a disk's error where a file or a row is written, for example."""
        ...

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        """Strike while the arriving process waits. Return what this process does then: `GO`, `raise EIO` (any name of
        `errno`: the station raises that OSError), or `hold 3` (it keeps the interpreter's lock for 3 seconds).
        """
        ...

    def proof(self, stack: "Stack") -> str:
        """Return the evidence that it struck, in words; raise NotLandedError without any. Called after the lift."""
        ...

    def lift(self, stack: "Stack") -> None:
        """End it. What it broke is to work again by itself from here on. Called once, also where it never struck."""
        ...
