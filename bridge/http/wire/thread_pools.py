"""Thread pools for operations: they block on disks and on Temporal, which the event loop must not."""

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
"""The pool for orders, separate from the one for reads, so that reads are answered while orders wait for an unreachable
Temporal.
"""

_HOSTS = ThreadPoolExecutor(4, thread_name_prefix="host")
"""A separate pool for calls of other hosts: otherwise two hosts that wait for each other's reads could deadlock."""


async def read(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run a read of the store in the pool for reads."""
    call = partial(function, *arguments, **named) if named else function
    return await asyncio.get_running_loop().run_in_executor(_READS, call, *(() if named else arguments))


async def for_host(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run a read for another host in a pool of its own."""
    return await asyncio.get_running_loop().run_in_executor(_HOSTS, partial(function, *arguments, **named))


async def act(operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run an operation in a thread, as the command line does. It completes even if the caller disconnects."""
    return await asyncio.get_running_loop().run_in_executor(_ACTS, lambda: _loop_here().run(operation()))


def at_once(operation: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    """Run an operation in another thread and wait for it. Raise `TimeoutError` if it takes longer."""
    return _ACTS.submit(lambda: _loop_here().run(operation())).result(seconds)


_KEPT = threading.local()


def _loop_here() -> asyncio.Runner:
    """Return this thread's event loop, created once."""
    if not hasattr(_KEPT, "loop"):
        _KEPT.loop = asyncio.Runner()
    runner: asyncio.Runner = _KEPT.loop
    return runner
