"""Limits of the runs on this host: in all, per repository and per runtime (ruling C8).

No library: with semaphores, a run that waits for one limit would hold a slot of another. Here a waiting run holds
nothing: no slot of the worker, no row, no worktree. So a repository at its limit doesn't delay others. Slots go to the
tree that has the fewest, and in a tree to the run that came first.

Threads are limited too (`in_turn`): Python's threads share one interpreter, and many threads waste time switching. Only
attempts take turns, not waits for a web server, for example.
"""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from activities.settings.model import Settings


@dataclass(frozen=True)
class SlotNeed:
    """The slots that a run needs."""

    tree: str
    repo: str
    runtime: str


@dataclass(eq=False)
class _WaitingRun:
    need: SlotNeed
    called: asyncio.Event = field(default_factory=asyncio.Event)


class Slots:
    """The slots of this host."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._taken: Counter[tuple[str, str]] = Counter()
        self._waiting: list[_WaitingRun] = []
        self._calls: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()
        self.held = ""
        """The reason why no run gets a slot, even a free one."""

    @property
    def load(self) -> int:
        """Return the number of runs that have a slot or wait for one."""
        return self._taken["all", ""] + len(self._waiting)

    def one_call(self, key: tuple[str, int]) -> asyncio.Lock:
        """Return the lock of an attempt's activity calls: a call that lost contact with the server must end before the
        next begins.
        """
        return self._calls.setdefault(key, asyncio.Lock())

    def hold(self, why: str) -> None:
        """Keep new runs from beginning, for this reason. With an empty reason, let them begin when slots are free."""
        self.held = why
        self._call()

    @asynccontextmanager
    async def taken(self, need: SlotNeed, *, runs_already: bool = False) -> AsyncIterator[None]:
        """Wait for a run's slots, and hold them during the context. A run that is running already gets them without
        waiting.
        """
        if runs_already:
            self._count(need, 1)
        else:
            await self._wait(need)
        try:
            yield
        finally:
            self._count(need, -1)
            self._call()

    async def _wait(self, need: SlotNeed) -> None:
        waiting = _WaitingRun(need)
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
        """Let waiting runs begin, one after another, for which slots are free."""
        while ready := [run for run in self._waiting if self.free(run.need)]:
            following = min(ready, key=lambda run: self._taken["tree", run.need.tree])
            self._waiting.remove(following)
            self._count(following.need, 1)
            following.called.set()

    def free(self, need: SlotNeed) -> bool:
        """Return whether the run would get its slots now. A limit of zero for a repository or a runtime means
        no limit.
        """
        section = self._settings.runtime(need.runtime)
        limits = {
            ("all", ""): self._settings.worker.max_parallel_jobs,
            ("repo", need.repo): self._settings.worker.max_parallel_per_repo,
            ("runtime", need.runtime): section.max_parallel,
        }
        return not self.held and all(not limit or self._taken[place] < limit for place, limit in limits.items())

    def _count(self, need: SlotNeed, by: int) -> None:
        for place in (("all", ""), ("repo", need.repo), ("runtime", need.runtime), ("tree", need.tree)):
            self._taken[place] += by


P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = max(4, os.cpu_count() or 1)
"""Maximum number of threads that work at once, mostly on git: one per processor, but at least four, so that two slow
repositories don't stop all others.
"""

MOST_THREADS = 512
"""Twice the maximum number of jobs at once, because a job that waits `out_of_turn` keeps its thread."""

_threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="turn")
_turns = threading.BoundedSemaphore(AT_ONCE)
_in_turn = threading.local()


async def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread, like `asyncio.to_thread`, but let only a few threads work at once."""
    context = copy_context()

    def run() -> T:
        with _turns:
            _in_turn.now = True
            return context.run(function, *args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(_threads, run)


@contextmanager
def out_of_turn() -> Iterator[None]:
    """Give this thread's turn to other threads during the context; no-op in a thread without a turn."""
    if not getattr(_in_turn, "now", False):
        yield
        return
    _turns.release()
    try:
        yield
    finally:
        _turns.acquire()
