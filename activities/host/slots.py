"""Limits of the runs on this host: in all, per repository and per runtime (ruling C8).

No library: semaphores take one limit after another, and a run that waits for the second would hold the first. A run
that waits here holds nothing: no slot of the worker, no row, no worktree. So a repository at its limit delays no other
one. Slots go to the tree that has the fewest, and in a tree to the run that came first.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from activities.settings.model import Settings


@dataclass(frozen=True)
class Need:
    """The slots that a run needs."""

    tree: str
    repo: str
    runtime: str


@dataclass(eq=False)
class _Waiting:
    need: Need
    called: asyncio.Event = field(default_factory=asyncio.Event)


class Slots:
    """The slots of this host."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._taken: Counter[tuple[str, str]] = Counter()
        self._waiting: list[_Waiting] = []
        self.held = ""
        """The reason why no run gets a slot, even a free one."""

    def hold(self, why: str) -> None:
        """Let nothing begin for this reason; an empty one lets runs begin as slots allow."""
        self.held = why
        self._call()

    @asynccontextmanager
    async def taken(self, need: Need, *, runs_already: bool = False) -> AsyncIterator[None]:
        """Wait for a run's slots and hold them. A run that goes on already holds its own at once."""
        if runs_already:
            self._count(need, 1)
        else:
            await self._wait(need)
        try:
            yield
        finally:
            self._count(need, -1)
            self._call()

    async def _wait(self, need: Need) -> None:
        waiting = _Waiting(need)
        self._waiting.append(waiting)
        self._call()
        try:
            await waiting.called.wait()
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:  # it got its slots in the same moment
                self._count(need, -1)
                self._call()
            raise

    def _call(self) -> None:
        """Let every run begin that has free slots, one after another."""
        while ready := [each for each in self._waiting if self.free(each.need)]:
            following = min(ready, key=lambda each: self._taken["tree", each.need.tree])
            self._waiting.remove(following)
            self._count(following.need, 1)
            following.called.set()

    def free(self, need: Need) -> bool:
        """Return whether the run would get its slots now. Zero means no limit for a repository or a runtime."""
        section = self._settings.runtime(need.runtime)
        limits = {
            ("all", ""): self._settings.worker.max_parallel_jobs,
            ("repo", need.repo): self._settings.worker.max_parallel_per_repo,
            ("runtime", need.runtime): section.max_parallel,
        }
        return not self.held and all(not limit or self._taken[place] < limit for place, limit in limits.items())

    def _count(self, need: Need, by: int) -> None:
        for place in (("all", ""), ("repo", need.repo), ("runtime", need.runtime), ("tree", need.tree)):
            self._taken[place] += by
