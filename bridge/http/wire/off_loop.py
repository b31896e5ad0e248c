"""Operations wait for disks and for Temporal; the loop that serves everybody must not."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_READS = ThreadPoolExecutor(4, thread_name_prefix="read")
_ACTS = ThreadPoolExecutor(32, thread_name_prefix="act")
"""Threads of their own: reads answer while everybody else waits for a Temporal that is gone."""


async def read(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What a look into the store says."""
    call = partial(function, *arguments, **named) if named else function
    return await asyncio.get_running_loop().run_in_executor(_READS, call, *(() if named else arguments))


async def act(operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Carry an operation out as the command line does; it ends even when the caller does not wait for it."""
    return await asyncio.get_running_loop().run_in_executor(_ACTS, lambda: _loop_here().run(operation()))


def at_once(operation: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    """What an operation says, for who looks in a thread of their own; a `TimeoutError` if it takes longer than that."""
    return _ACTS.submit(lambda: _loop_here().run(operation())).result(seconds)


_KEPT = threading.local()


def _loop_here() -> asyncio.Runner:
    """The loop of this thread: making one for each call takes half a millisecond."""
    if not hasattr(_KEPT, "loop"):
        _KEPT.loop = asyncio.Runner()
    runner: asyncio.Runner = _KEPT.loop
    return runner
