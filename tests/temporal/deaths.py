"""Workers that are started to die, and their common options."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client

from activities.settings.home import Home

TASK_TIMEOUT = timedelta(seconds=1)

SEED = 20260


@asynccontextmanager
async def worker(client: Client, queue: str, home: Home, moment: int) -> AsyncIterator[asyncio.subprocess.Process]:
    address = client.service_client.config.target_host
    words = ("-m", "tests.temporal.mortal_worker", address, queue, str(home.root), str(moment))
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=Path(__file__).parents[2])
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
