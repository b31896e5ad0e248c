"""Polling with a generous timeout, for conditions that stay true once they are.

A passing test never waits longer than the condition takes, so the timeout is generous: on a machine with three times
the load, tests are slow but not red. Don't wait for a momentary state: wait for its trace (a row, an event, a file), or
let the test hold it (a file that its agent waits for).
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Timeout in seconds, also for a busy machine."""
PAUSE = 0.02


def wait_for(what: Callable[[], object], detail: Callable[[], object] | str = "", seconds: float = PATIENCE) -> None:
    """Wait until this is true; `detail` describes the state in the failure message."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, _failure(detail, seconds)
        time.sleep(PAUSE)


async def until(
    what: Callable[[], object | Awaitable[object]], detail: Callable[[], object] | str = "", seconds: float = PATIENCE
) -> None:
    """Wait in an event loop until this is true; the condition may be asynchronous."""
    deadline = time.monotonic() + seconds
    while not await _seen(what()):
        assert time.monotonic() < deadline, _failure(detail, seconds)
        await asyncio.sleep(PAUSE)


async def soon(work: Awaitable[T]) -> T:
    """Await a result, with the timeout."""
    return await asyncio.wait_for(work, PATIENCE)


async def _seen(outcome: object | Awaitable[object]) -> object:
    return await outcome if inspect.isawaitable(outcome) else outcome


def _failure(detail: Callable[[], object] | str, seconds: float) -> str:
    return f"not within {seconds:g} s: {detail() if callable(detail) else detail}"
