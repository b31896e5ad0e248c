"""Live updates of open pages by server-sent events, which resume where they were cut off (ruling M5).

One task polls the store for all pages, and a page that is open in several tabs is rendered once.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.exc import DBAPIError

from bridge.http.dashboard.frame.outages import Outage, find_outages
from bridge.http.dashboard.frame.page import PageRequest, PageView
from bridge.http.wire.store_watch import StoreWatch
from bridge.http.wire.thread_pools import act, read
from bridge.operations.orders import attention
from bridge.operations.service import Service

log = logging.getLogger(__name__)

REST_SECONDS = 4.0
"""Seconds between two checks for outages and counts of waiting items."""
OLD_SECONDS = 15.0
"""A page waits for a new check if the last one is older: an outage may be over."""
FIRST_SECONDS = 2.0
STILL_HERE_SECONDS = 15.0
MOST = 8
"""Streams of one session: a browser opens six connections to a bridge, for all its pages together.

Twice as many are held while those that make room have not ended; one more is refused.
"""
KEPT = 64
"""Rendered pages in the cache."""

_TIMES = re.compile("(<time [^<>]*>)[^<]*")

Describe = Callable[[Exception], str]
"""Describes an error in a sentence."""
_State = tuple[str | None, str, int | None]
"""The digest, the trouble and the number of waiting items that a page was last sent."""


@dataclass
class _RenderedPage:
    html: str = ""
    digest: str = ""
    trouble: str = ""
    """The reason the content may be outdated."""
    change: int = -1
    at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Watch(StoreWatch):
    """A watch of the store that also checks for outages, and counts what waits."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.outages: tuple[Outage, ...] = ()
        self.waiting: int | None = None
        """Number of items that wait for a person; None until it was counted."""
        self._rest: asyncio.Task[None] | None = None
        self._rest_at = float("-inf")

    async def refresh(self) -> None:
        """Refresh outages and the count of waiting items. If the last check is old, wait for the new one, up to a
        bound.
        """
        old = time.monotonic() - self._rest_at > OLD_SECONDS
        looking = self._look_at_the_rest()
        if old:
            await asyncio.wait({looking}, timeout=FIRST_SECONDS)

    async def recount(self) -> None:
        """Count the waiting items again, after an order on them."""
        self.waiting = await read(attention.number, self._service)

    def _beside(self) -> object:
        self._look_at_the_rest()
        return self.outages, self.waiting

    def _look_at_the_rest(self) -> asyncio.Task[None]:
        """Check outages and waiting items in a separate task: a hanging Temporal must not delay news of the store."""
        stale = time.monotonic() - self._rest_at > REST_SECONDS
        if self._rest is None or (self._rest.done() and stale):
            self._rest = asyncio.create_task(self._rest_now())
        return self._rest

    async def _rest_now(self) -> None:
        try:
            self.outages = await act(partial(find_outages, self._service))
            self.waiting = await read(attention.number, self._service)
        except DBAPIError:
            pass  # `outages` reports the store's outage
        except Exception:
            log.exception("cannot read what is gone and what waits")
        self._rest_at = time.monotonic()


@dataclass(eq=False)
class _Seat:
    """One stream of a session, which ends when it has to make room for a newer one."""

    makes_room: bool = False


class Live:
    """The streams of all open pages."""

    def __init__(self, service: Service, render: Callable[[PageView, PageRequest], str]) -> None:
        self.watch = Watch(service)
        self._render = render
        self._shown: OrderedDict[tuple[str, str], _RenderedPage] = OrderedDict()
        self._seats: dict[str, list[_Seat]] = {}

    async def stream(
        self, page: PageView, asked: PageRequest, seen: str | None, describe: Describe, goes_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Yield the content of the page's `main` whenever it has changed, until the session ends.

        If a session has `MOST` streams, the oldest page makes room for a new one, and is notified of that.
        """
        yield b"retry: 1000\n\n"
        before: _State = (seen, "", None)
        sent = time.monotonic()
        with self.watch as watch, self._seat(asked.session.key) as seat:
            await watch.stir()
            while goes_on() and not seat.makes_room:
                change = watch.change
                shown = await self._now(page, asked, describe)
                now = (shown.digest or before[0], shown.trouble, watch.waiting)
                if now != before or time.monotonic() - sent > STILL_HERE_SECONDS:
                    yield _news(shown, before, now)
                    before, sent = now, time.monotonic()
                seconds = min(page.fresh_seconds, STILL_HERE_SECONDS)
                await watch.later_than(change, seconds, unless=lambda: seat.makes_room)
            yield b"event: crowded\ndata: %d\n\n" % MOST if seat.makes_room else b"event: over\ndata: session\n\n"

    @contextmanager
    def _seat(self, session: str) -> Iterator[_Seat]:
        seats, mine = self._seats.setdefault(session, []), _Seat()
        seats.append(mine)
        for first in seats[:-MOST]:
            first.makes_room = True
        try:
            yield mine
        finally:
            seats.remove(mine)
            if not seats:
                del self._seats[session]

    async def _now(self, page: PageView, asked: PageRequest, describe: Describe) -> _RenderedPage:
        key = (asked.session.key, f"{asked.path}?{sorted(asked.query.items())}")
        shown = self._shown.setdefault(key, _RenderedPage())
        self._shown.move_to_end(key)
        if len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        async with shown.turn:
            change, now = self.watch.change, time.monotonic()
            if shown.change != change or now - shown.at >= page.fresh_seconds:
                try:
                    shown.html, shown.trouble = await read(self._render, page, asked), ""
                    shown.digest = digest_of(shown.html)
                except Exception as error:
                    shown.trouble = describe(error)
                shown.change, shown.at = change, now
        return shown


def digest_of(html: str) -> str:
    """Return a digest of a page's content. It ignores relative times, which change all the time."""
    return hashlib.blake2b(_TIMES.sub(r"\1", html).encode(), digest_size=12).hexdigest()


def _news(shown: _RenderedPage, before: _State, now: _State) -> bytes:
    """Return the events for all changed parts, after a keep-alive comment."""
    events = b": still here\n\n"
    if now[0] != before[0]:
        lines = "".join(f"data: {line}\n" for line in shown.html.splitlines())
        events += f"id: {shown.digest}\n{lines}\n".encode()
    if now[1] != before[1]:
        events += f"event: trouble\ndata: {' '.join(now[1].split())}\n\n".encode()
    if now[2] != before[2]:
        events += f"event: waiting\ndata: {now[2]}\n\n".encode()
    return events
