"""A watch of the store, shared by all open pages and streams that wait for a change."""

import asyncio
import logging
from collections.abc import Callable
from typing import Self

from sqlalchemy.exc import DBAPIError

from activities.store.database import Changes
from bridge.http.wire.thread_pools import read
from bridge.operations.service import Service

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.4


class StoreWatch:
    """A counter of changes in the store, polled while somebody looks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.change = 0
        self.lookers = 0
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()

    def __enter__(self) -> Self:
        self.lookers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        return self

    def __exit__(self, *_: object) -> None:
        self.lookers -= 1

    async def later_than(self, change: int, seconds: float, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait until a newer change, until `unless` is true, or for the given seconds."""
        try:
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(lambda: self.change > change or unless())
        except TimeoutError:
            return

    async def stir(self) -> None:
        """Wake all tasks that wait for a change."""
        async with self._news:
            self._news.notify_all()

    def _beside(self) -> object:
        """Return what else counts as a change if it differs."""
        return None

    async def _look(self) -> None:
        """Poll while somebody looks. Errors are retried: without this task nobody would be told of a change."""
        changes: Changes | None = None
        number, before = -1, None
        try:
            while self.lookers:
                try:
                    if changes is None:
                        changes = await read(lambda: Changes(self._service.store))
                    number = await read(changes.number)
                except Exception as error:
                    number = -1
                    if not isinstance(error, DBAPIError):
                        log.exception("cannot read whether the store has changed")
                if before != (now := (number, self._beside())):
                    before = now
                    async with self._news:
                        self.change += 1
                        self._news.notify_all()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._task = None
            if changes is not None:
                changes.close()
