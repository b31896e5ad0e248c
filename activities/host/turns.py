"""The threads in which attempts begin and end.

Few of them work at once: Python's threads share one interpreter, and many threads spend their time on handing it over.
Only attempts use them: a wait for a web server, for example, happens elsewhere.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = max(4, os.cpu_count() or 1)
"""As many as processors, since git's work needs no interpreter, but at least four, so that two slow repositories
don't stop all others.
"""

MOST_THREADS = 512
"""Twice the most jobs that go on at once: one that waits `out_of_turn` keeps its thread."""

_threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="turn")
_turns = threading.BoundedSemaphore(AT_ONCE)
_in_turn = threading.local()


async def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread, like `asyncio.to_thread`, but few at once."""
    context = copy_context()

    def run() -> T:
        with _turns:
            _in_turn.now = True
            return context.run(function, *args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(_threads, run)


@contextmanager
def out_of_turn() -> Iterator[None]:
    """Let other threads work meanwhile; no-op in a thread without a turn."""
    if not getattr(_in_turn, "now", False):
        yield
        return
    _turns.release()
    try:
        yield
    finally:
        _turns.acquire()
