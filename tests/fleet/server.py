"""A Temporal server that is not the service's own, on a database file: it can be killed and started again."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bridge.daemon.server import find_program
from bridge.machine.ports import LOOPBACK, is_free
from tests.e2e.conftest import lane
from tests.waiting import wait_for


@dataclass
class Server:
    """Temporal's development server, without the service's set-up."""

    database: Path
    port: int = field(default_factory=lambda: int(lane()["SERVICE_TEMPORAL_PORT"]))
    _process: subprocess.Popen[bytes] = field(init=False)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        words = ("--headless", "--port", str(self.port), "--log-level", "error", "--db-filename", str(self.database))
        command = (str(find_program()), "server", "start-dev", *words)
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: not is_free(self.port), self._process.poll)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def running(database: Path) -> Iterator[Server]:
    """Run a server during the context."""
    made = Server(database)
    made.start()
    try:
        yield made
    finally:
        made.kill()
