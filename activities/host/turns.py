"""The threads in which attempts begin and end.

Attempts have few threads: all of Python's threads share one interpreter, and many of them at once spend their time on
handing it to one another. These threads are theirs alone: what waits for a web server, for example, waits elsewhere.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = max(4, os.cpu_count() or 1)
"""As many as there are processors, since git's work needs no interpreter; and some more than two slow repositories."""

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="turn")


async def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`."""
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: context.run(function, *args, **kwargs))
