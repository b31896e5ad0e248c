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
COUNTED = re.compile(
    r'^persistence_error_with_type\{.*error_type="(?:TimeoutError|.*Unavailable|.*ResourceExhausted)".*\} (\d+)',
    re.MULTILINE,
)


@dataclass
class Injected(Base):
    """The server's own fault injector, which is always on: no seed draws it."""

    name: str = "errors of the server's storage"
    needs: frozenset[str] = frozenset({"injector"})
    _before: int | None = None

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self._before = errors()
        return GO

    def proof(self, stack: "Stack") -> str:
        if self._before is None or (more := errors() - self._before) <= 0:
            raise NotLandedError("the server's storage had no error")
        return f"the server's storage had {more} errors"


def errors() -> int:
    """Return how many errors the server's storage had."""
    return sum(int(number) for number in COUNTED.findall(httpx.get(METRICS).text))


FAULTS = (Injected,)
