"""How many runs go on at once on this host, per repository and per runtime (ruling C8)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from activities.settings.model import RuntimeSection, Settings


class Places:
    """The places there are; a run waits for one of its repository and one of its runtime, in this order."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free: dict[tuple[str, str], asyncio.Semaphore] = {}

    @asynccontextmanager
    async def taken(self, repo: str, runtime: str) -> AsyncIterator[None]:
        """Hold a run's places; zero means there is no limit."""
        section = self._settings.runtimes.get(runtime, RuntimeSection())
        limits = (
            ("repo", repo, self._settings.worker.max_parallel_per_repo),
            ("runtime", runtime, section.max_parallel),
        )
        async with AsyncExitStack() as held:
            for kind, name, limit in limits:
                if limit:
                    await held.enter_async_context(self._free.setdefault((kind, name), asyncio.Semaphore(limit)))
            yield
