"""Orders to stop attempts that run on this host, read from the store: one statement a second for all of them (Q7).

A tree writes such an order for a reason of `StopReason`, and never to take an offer back. The service's own server, and
others that announce it, send cancellations to the worker at once; then the store isn't read. Other servers report a
cancellation only in answer to a heartbeat, and heartbeats are rare.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from activities.store import claim_rows

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class StopOrders:
    """The attempts that run on this host, and whether they were ordered to stop."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], asyncio.Event] = {}

    @contextmanager
    def listen(self, key: tuple[str, int]) -> Iterator[asyncio.Event]:
        """Yield the event that an order to stop this job's attempt sets."""
        event = self._running[key] = asyncio.Event()
        try:
            yield event
        finally:
            del self._running[key]

    def runs(self, key: tuple[str, int]) -> bool:
        """Return whether a call for this job's attempt is under way on this host."""
        return key in self._running

    async def follow(self, store: Engine) -> None:
        """Read the orders every second while the worker lives. Nothing is read while nothing runs."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look(store)
            except SQLAlchemyError as error:
                log.warning("cannot look for orders to stop: %s", error)

    async def look(self, store: Engine) -> None:
        """Read the orders of all running attempts once."""
        going_on = [key for key, ordered in self._running.items() if not ordered.is_set()]
        if not going_on:
            return
        for key in await asyncio.to_thread(claim_rows.ordered_to_stop, store, going_on):
            if ordered := self._running.get(key):  # it may have ended meanwhile
                ordered.set()
