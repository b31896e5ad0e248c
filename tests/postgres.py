"""A PostgreSQL server of a test's own, from the programs of Debian's package, in a temporary folder."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.waiting import wait_for


def programs() -> Path:
    """Return the folder of the server's programs; skip the test where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = shutil.which("initdb") or (str(found[-1]) if found else None)
    if program is None:
        pytest.skip("PostgreSQL is not installed: the store is proven on SQLite only (apt-get install postgresql)")
    return Path(program).parent


@dataclass(frozen=True)
class Postgres:
    """A server that can be stopped, killed and started again."""

    folder: Path
    port: int
    connections: int
    options: str = ""
    """Further words of its command line."""

    @property
    def url(self) -> str:
        return self.database("postgres")

    def database(self, name: str, port: int | None = None) -> str:
        """Return the URL of a database, at the server's port or at one that leads there."""
        return f"postgresql+psycopg://service@127.0.0.1:{port or self.port}/{name}"

    def create(self, name: str) -> str:
        """Create a database, and return its URL."""
        engine = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        return self.database(name)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        options += f" -c max_connections={self.connections} {self.options}"
        self._run("pg_ctl", "-D", self._data, "-o", options, "-w", "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill the server and its processes with -9, as a crash does."""
        lock = self.folder / "data" / "postmaster.pid"
        leader = int(lock.read_text().split()[0])
        os.kill(leader, signal.SIGSTOP)  # it starts none again
        pids = [*_children(leader), leader]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(Path(f"/proc/{pid}/root").exists() for pid in pids))
        lock.unlink()  # a container without an init keeps the dead process, which looks alive to the next server

    def make(self) -> None:
        self._run("initdb", "-D", self._data, "-U", "service", "--auth=trust", "--no-sync")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *words: str) -> None:
        command = [*_unprivileged(self.folder), str(programs() / program), *words]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)


@contextlib.contextmanager
def running(connections: int = 30, options: str = "") -> Iterator[Postgres]:
    """Run a server during the context."""
    programs()
    # Not below pytest's own folders, which are closed to PostgreSQL's account.
    with tempfile.TemporaryDirectory(prefix="service-postgres-", ignore_cleanup_errors=True) as name:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = Postgres(Path(name), port, connections, options)
        server.make()
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):  # a test may have ended it
                server.stop()


def _children(leader: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(leader)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def _unprivileged(folder: Path) -> list[str]:
    """Return the words that run PostgreSQL as its own account, since it refuses root, and give it the folder."""
    if os.getuid() != 0:
        return []
    owner = pwd.getpwnam("postgres")
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
