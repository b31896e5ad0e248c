"""Faults of the lines to the Temporal server and to the store: cut, slow, reset, half open, and a lost reply."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tests.chaos.faults.base import Base
from tests.chaos.protocol import GO, Arrival, NotLandedError
from tests.fleet.lines import Line

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

OUTAGE = 20.0
SLOW = 0.5
"""Seconds that each chunk takes on a slow line."""
HEAD = 9
"""Bytes of the head of an HTTP/2 frame."""
GRPC_HEAD = 5
DATA = 0


@dataclass
class _OfLine(Base):
    """A fault of one line. Its proof is a counter of the line that grew."""

    part: str
    """`temporal` or `store`."""
    needs: frozenset[str] = frozenset({"lines"})
    seconds: float = OUTAGE
    _before: int = 0

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        line = stack.lines[self.part]
        self._before = self.count(line)
        self.begin(line)
        return GO

    def begin(self, line: Line) -> None:
        raise NotImplementedError

    def count(self, line: Line) -> int:
        """Return how much came and was not passed on at once."""
        return line.withheld

    def proof(self, stack: "Stack") -> str:
        if (more := self.count(stack.lines[self.part]) - self._before) <= 0:
            raise NotLandedError(f"nothing met the fault of the line to {self.part}")
        return f"the line to {self.part}: {more} {self.what}"

    what = "bytes withheld"

    def lift(self, stack: "Stack") -> None:
        stack.lines[self.part].mend()


class Cut(_OfLine):
    """Nothing passes, and nobody is told: a pulled cable."""

    @property
    def name(self) -> str:
        return f"cut {self.part}"

    def begin(self, line: Line) -> None:
        line.cut()


class HalfOpen(_OfLine):
    """The server's ends of all connections are gone; the callers' ends stay open and silent."""

    @property
    def name(self) -> str:
        return f"half-open {self.part}"

    def begin(self, line: Line) -> None:
        line.desert()


class Slow(_OfLine):
    """Each chunk takes half a second."""

    what = "chunks delayed"

    @property
    def name(self) -> str:
        return f"slow {self.part}"

    def begin(self, line: Line) -> None:
        line.delay = SLOW

    def count(self, line: Line) -> int:
        return line.delayed


@dataclass
class Reset(_OfLine):
    """All connections are reset at once."""

    seconds: float = 0.0
    what = "connections reset"

    @property
    def name(self) -> str:
        return f"reset {self.part}"

    def begin(self, line: Line) -> None:
        line.reset()

    def count(self, line: Line) -> int:
        return line.resets


@dataclass
class LostReply(_OfLine):
    """A request is carried out, and its reply is lost with the connection."""

    @property
    def name(self) -> str:
        return f"lost reply {self.part}"

    def begin(self, line: Line) -> None:
        line.loses = REPLIES[self.part]


def commits(chunk: bytes) -> bool:
    """Return whether PostgreSQL says here that it has committed."""
    return b"COMMIT\0" in chunk


def answers(chunk: bytes) -> bool:
    """Return whether these bytes begin with HTTP/2 frames one of which bears the message of a gRPC reply."""
    return any(kind == DATA and length >= GRPC_HEAD for length, kind in _frames(chunk))


def _frames(chunk: bytes) -> Iterator[tuple[int, int]]:
    """Yield length and kind of each frame."""
    while len(chunk) >= HEAD:
        length = int.from_bytes(chunk[:3])
        yield length, chunk[3]
        chunk = chunk[HEAD + length :]


REPLIES: dict[str, Callable[[bytes], bool]] = {"temporal": answers, "store": commits}
FAULTS = tuple(partial(make, to) for make in (Cut, HalfOpen, Slow, Reset, LostReply) for to in REPLIES)
