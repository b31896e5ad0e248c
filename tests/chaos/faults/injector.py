"""Errors of the storage of a real Temporal server that is given: among them "timed out" for what is done."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from tests.chaos.faults.base import Base
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

GIVEN = "SERVICE_TEST_TEMPORAL"
"""The variable with the address of such a server."""
METRICS = "http://127.0.0.1:7936/metrics"
"""Where a server with the settings of `temporal.yaml` counts its errors."""
ERRORS = "TimeoutError|Unavailable|ResourceExhausted"
COUNTED = re.compile(
    rf'^persistence_error_with_type\{{error_type=".*(?:{ERRORS})",namespace="(\w+)".*\}} (\d+)', re.MULTILINE
)
"""Its line for a kind of error; a namespace has `_` for `-`."""


@dataclass
class Injected(Base):
    """The server's own fault injector, which is always on: no seed draws it."""

    name: str = "errors of the server's storage"
    needs: frozenset[str] = frozenset({"injector"})
    seconds: float = 60.0
    """Two lost replies in a row take two heartbeats: a worker reports an end once, also if that times out."""
    _before: int | None = None

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self._before = errors(httpx.get(METRICS).text, stack.folder.name)
        return GO

    def proof(self, stack: "Stack") -> str:
        if self._before is None:
            raise NotLandedError("it was never looked at")
        if not (more := errors(httpx.get(METRICS).text, stack.folder.name) - self._before):
            raise NotLandedError("the server's storage had no error")
        return f"the server's storage had {more} errors"


def errors(metrics: str, namespace: str) -> int:
    """Return how many errors the server's storage had with a namespace."""
    known = COUNTED.findall(metrics)
    return sum(int(number) for name, number in known if name == namespace.replace("-", "_"))


FAULTS = (Injected,)
