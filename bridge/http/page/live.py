"""Open pages are told what has changed, by server-sent events that begin again where they were cut off (ruling M5).

Whoever looks after the store for all of them is one task, and a page that several tabs show is rendered once.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.exc import DBAPIError

from activities.store.database import Changes
from bridge.http.page.halves import Gone, gone
from bridge.http.page.page import Asked, Page
from bridge.http.wire.off_loop import act, read
from bridge.operations.service import Service

LOOK_SECONDS = 0.4
PARTS_SECONDS = 4.0
"""How often it is looked whether a part of the service is gone."""
STILL_HERE_SECONDS = 15.0
KEPT = 64
"""Rendered pages that are remembered."""


@dataclass
class _Shown:
    html: str = ""
    digest: str = ""
    change: int = -1
    at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Watch:
    """Counts what changes, in the store and in what the service stands on, while somebody looks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.change = 0
        self.gone: tuple[Gone, ...] = ()
        self._parts_at = float("-inf")
        self._looking: asyncio.Future[tuple[Gone, ...]] | None = None
        self._lookers = 0
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()

    async def known(self) -> None:
        """Have it looked what is gone; only who comes first waits for that."""
        first = self._parts_at == float("-inf")
        looking = asyncio.ensure_future(self._parts())
        self._looking = looking
        if first:
            await looking

    async def _parts(self) -> tuple[Gone, ...]:
        if time.monotonic() - self._parts_at > PARTS_SECONDS:
            self._parts_at = time.monotonic()
            self.gone = await act(partial(gone, self._service))
        return self.gone

    def __enter__(self) -> "Watch":
        self._lookers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        return self

    def __exit__(self, *_: object) -> None:
        self._lookers -= 1
        if self._lookers == 0 and self._task is not None:
            self._task.cancel()
            self._task = None

    async def later_than(self, change: int, seconds: float) -> None:
        """Return when there is a newer change, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(lambda: self.change > change)
        except TimeoutError:
            return

    async def _look(self) -> None:
        changes, number = await read(Changes, self._service.store), -1
        try:
            while True:
                before = (number, self.gone)
                try:
                    number = await read(changes.number)
                except DBAPIError:
                    number = -1
                if before != (number, await self._parts()):
                    async with self._news:
                        self.change += 1
                        self._news.notify_all()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            changes.close()


class Live:
    """The streams of all open pages."""

    def __init__(self, service: Service, render: Callable[[Page, Asked], str]) -> None:
        self.watch = Watch(service)
        self._render = render
        self._shown: OrderedDict[tuple[str, str], _Shown] = OrderedDict()

    async def stream(
        self, page: Page, asked: Asked, seen: str | None, goes_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """What is inside the page's `main`, each time it has become another, until the session ends."""
        yield b"retry: 1000\n\n"
        sent = time.monotonic()
        with self.watch as watch:
            while goes_on():
                change = watch.change
                shown = await self._now(page, asked)
                if shown.digest != seen:
                    seen, sent = shown.digest, time.monotonic()
                    yield _message(shown)
                elif time.monotonic() - sent > STILL_HERE_SECONDS:
                    sent = time.monotonic()
                    yield b": still here\n\n"
                await watch.later_than(change, min(page.fresh_seconds, STILL_HERE_SECONDS))
        yield b"event: over\ndata: session\n\n"

    async def _now(self, page: Page, asked: Asked) -> _Shown:
        key = (asked.session.key, f"{asked.path}?{sorted(asked.query.items())}")
        shown = self._shown.setdefault(key, _Shown())
        self._shown.move_to_end(key)
        if len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        async with shown.turn:
            change, now = self.watch.change, time.monotonic()
            if shown.change != change or now - shown.at >= page.fresh_seconds:
                html = await read(self._render, page, asked)
                shown.html, shown.digest = html, digest_of(html)
                shown.change, shown.at = change, now
        return shown


def digest_of(html: str) -> str:
    """The same as long as a page shows the same."""
    return hashlib.blake2b(html.encode(), digest_size=12).hexdigest()


def _message(shown: _Shown) -> bytes:
    lines = "".join(f"data: {line}\n" for line in shown.html.splitlines())
    return f"id: {shown.digest}\n{lines}\n".encode()
