"""Rate limits: a token bucket per caller, refilled steadily (ruling J2).

Libraries for FastAPI count by address in a shared store; this counts by token in one process.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Scope

from bridge.http.gates.gate import MCP, HeadGate, is_probe
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import RateLimitedError
from bridge.http.wire.webhook import is_signed

MOST_CALLERS = 4096
"""Callers to remember; the least recent is evicted first."""

MESSAGES = 10
"""MCP messages for each call that may be made: a client sends several before its first order, and asks again and again
how its tasks stand.
"""


@dataclass
class _Bucket:
    left: float
    at: float


class Rate:
    """The token buckets of all callers."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._per_second, self._clock = float(per_minute), per_minute / 60, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, caller: str) -> int:
        """Count a call of this caller. Return 0 if it may pass, else the whole seconds until the next may."""
        now = self._clock()
        bucket = self._buckets.setdefault(caller, _Bucket(self._capacity, now))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        bucket.left = min(self._capacity, bucket.left + (now - bucket.at) * self._per_second)
        bucket.at = now
        if bucket.left >= 1:
            bucket.left -= 1
            return 0
        return max(1, math.ceil((1 - bucket.left) / self._per_second))

    def count(self, caller: str) -> None:
        """Count a call, or refuse it and say when to retry."""
        if seconds := self.take(caller):
            message = f"too many requests: {self._capacity:g} a minute are taken; try again in {seconds} s"
            raise RateLimitedError(message, str(seconds))


class RateGate(HeadGate):
    """A gate that rate-limits callers with a token. MCP messages count apart; orders in them count as calls."""

    def __init__(self, app: ASGIApp, rate: Rate, messages: Rate) -> None:
        super().__init__(app)
        self._rate, self._messages = rate, messages

    async def check(self, scope: Scope) -> None:
        if not is_probe(scope) and not is_signed(scope):
            (self._messages if scope["path"] == MCP else self._rate).count(call_of(scope).caller)
