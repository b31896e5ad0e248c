"""A limit of open streams and waiting calls per caller, so that no caller can occupy all connections (ruling N8)."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from bridge.http.wire.call import call_of
from bridge.http.wire.errors import TooManyStreamsError

MOST = 64
"""Limit per caller; the bridge holds four times as many connections (`bridge.http.connections`)."""


class HeldOpen:
    """Counts the open streams and waiting calls of each caller, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, Counter[str]()

    @contextmanager
    def wait(self, scope: Scope) -> Iterator[None]:
        """Count a waiting call, or refuse it at the limit."""
        caller = self._count(scope)
        try:
            yield
        finally:
            self._end(caller)

    def stream(self, scope: Scope, body: AsyncIterator[bytes]) -> StreamingResponse:
        """Return a response that streams events and counts until it ends. Refuse it at the limit."""
        return _Counted(self, self._count(scope), body)

    def _count(self, scope: Scope) -> str:
        caller = call_of(scope).caller
        if self._held[caller] >= self._most:
            message = f"{self._most} streams and waits of this caller are open; close one, then try again"
            raise TooManyStreamsError(message)
        self._held[caller] += 1
        return caller

    def _end(self, caller: str) -> None:
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]


class _Counted(StreamingResponse):
    def __init__(self, held: HeldOpen, caller: str, body: AsyncIterator[bytes]) -> None:
        super().__init__(body, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._held, self._caller = held, caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._held._end(self._caller)
