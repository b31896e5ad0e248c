"""The threads in which attempts begin and end.

All of Python's threads share one interpreter, so many of them at once only hand it around, which costs more than it
gives. They have threads of their own: whatever else waits in a thread, such as for a web server, waits elsewhere.
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
"""Git works outside of the interpreter, and of four repositories not all take long."""

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="turn")


async def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`."""
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: context.run(function, *args, **kwargs))
