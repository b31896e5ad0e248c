"""Wait for the end of a process that is not a child: by a pidfd where the kernel has them, else by polling."""

import asyncio
import os
from collections.abc import Callable

POLL_SECONDS = 0.1


async def wait_until_gone(pid: int, alive: Callable[[], bool], seconds: float) -> bool:
    """Return whether the process ends within that time. `alive` distinguishes it from a process with a reused pid."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):
        return await _poll(alive, seconds)
    try:
        # checked after opening, so that a reused pid is not waited for
        return not alive() or await _readable(descriptor, seconds)
    finally:
        os.close(descriptor)


async def _readable(descriptor: int, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), seconds)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True


async def _poll(alive: Callable[[], bool], seconds: float) -> bool:
    for _ in range(max(1, round(seconds / POLL_SECONDS))):
        if not alive():
            return True
        await asyncio.sleep(POLL_SECONDS)
    return not alive()
