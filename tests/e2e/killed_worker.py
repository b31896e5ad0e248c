"""A worker that is killed (-9) and restarted, on a server of the test's own."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence

from activities.settings.home import Home
from activities.settings.ready import pid_of
from tests.e2e.conftest import Installed
from tests.waiting import until

WORKER = ("-m", "activities")


class KilledWorker:
    """One worker at a time; `words` are Python's arguments if it is not the plain worker."""

    def __init__(self, installed: Installed, address: str, words: Sequence[str] = WORKER) -> None:
        self._home = Home(installed.home)
        self._environment = installed.environment | {"SERVICE_TEMPORAL_ADDRESS": address}
        self._command = [sys.executable, "-P", *words]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the worker, and wait until it polls."""
        process = await asyncio.to_thread(
            subprocess.Popen, self._command, env=self._environment, stderr=subprocess.DEVNULL
        )
        self._process = process
        await until(lambda: process.poll() is not None or pid_of(self._home.worker_ready) == process.pid)
        assert process.poll() is None

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        assert self._process.wait() == -signal.SIGKILL


def use_default_namespace(installed: Installed) -> None:
    """Set the namespace of a test's server."""
    with (installed.home / "config.toml").open("a") as config:
        config.write('[temporal]\nnamespace = "default"\n')
