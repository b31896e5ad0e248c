"""The one way to wait: for what stays true once it has come true, looked at again and again, with patience.

A test that passes never waits longer than what it waits for takes, so the patience is generous: on a machine that does
three times as much beside the tests they are slow and not red. What is there only for a moment is not waited for: look
for what it leaves behind (a row, an event, a file), or let the test hold it (a file that its agent waits for).
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds until something must have come true, on a machine that has much else to do."""
PAUSE = 0.02


def wait_for(what: Callable[[], object], said: Callable[[], object] | str = "", seconds: float = PATIENCE) -> None:
    """Until this is true; `said` tells who reads the failure what it was, or how things stood."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, _failure(said, seconds)
        time.sleep(PAUSE)


async def until(
    what: Callable[[], object | Awaitable[object]], said: Callable[[], object] | str = "", seconds: float = PATIENCE
) -> None:
    """`wait_for` in an event loop, where looking may be asynchronous too."""
    deadline = time.monotonic() + seconds
    while not await _seen(what()):
        assert time.monotonic() < deadline, _failure(said, seconds)
        await asyncio.sleep(PAUSE)


async def soon(work: Awaitable[T]) -> T:
    """What this comes to; whoever hangs fails."""
    return await asyncio.wait_for(work, PATIENCE)


async def _seen(found: object | Awaitable[object]) -> object:
    return await found if inspect.isawaitable(found) else found


def _failure(said: Callable[[], object] | str, seconds: float) -> str:
    return f"not within {seconds:g} s: {said() if callable(said) else said}"
