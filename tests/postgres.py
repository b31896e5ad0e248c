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
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from tests.waiting import PATIENCE, wait_for


def programs() -> Path:
    """Return the folder of the server's programs; skip the test where they are not installed."""
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = shutil.which("initdb") or (str(paths[-1]) if paths else None)
    if program is None:
        pytest.skip("PostgreSQL is not installed: the store is proven on SQLite only (apt-get install postgresql)")
    return Path(program).resolve().parent


@dataclass(frozen=True)
class Postgres:
    """A server that can be stopped, killed and started again."""

    folder: Path
    port: int
    connections: int
    options: str = ""
    """Further words of its command line."""
    admin: str = "service"
    """The role of its administrator."""
    disk: int = 0
    """The size of the disk of its own that its data is on, in MiB."""
    replicas: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)
    """The folders of its replicas."""

    @property
    def url(self) -> str:
        return self.database("postgres")

    def database(self, name: str, port: int | None = None) -> str:
        """Return the URL of a database, at the server's port or at one that leads there."""
        return f"postgresql+psycopg://service@127.0.0.1:{port or self.port}/{name}"

    def create(self, name: str) -> str:
        """Create a database, and return its URL."""
        self._execute(f'CREATE DATABASE "{name}"')
        return self.database(name)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        options += f" -c max_connections={self.connections} {self.options}"
        waits = ("-w", "-t", f"{PATIENCE:.0f}")
        self._run("pg_ctl", "-D", self._data, "-o", options, *waits, "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill the server and its processes with -9, as a crash does."""
        leader = self._leader
        os.kill(leader, signal.SIGSTOP)  # it starts none again
        pids = [*_children(leader), leader]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(_lives, pids)))
        self._lock.unlink()  # a container without an init keeps the dead process, which looks alive to the next server

    def fill(self) -> None:
        """Leave nothing free on its disk, as another program's files do: from here on, no table can grow."""
        assert Path(self._data).is_mount(), "it would fill the disk of the machine"
        self._execute("CREATE TABLE IF NOT EXISTS filler (text text)")
        with self._ballast.open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        self._write_until_it_fails("INSERT INTO filler SELECT repeat('x', 100) FROM generate_series(1, 100000)")

    def panic(self) -> None:
        """Use up the log that it has on its full disk: it ends all connections, and cannot recover."""
        self._write_until_it_fails("SELECT pg_switch_wal(), pg_logical_emit_message(true, '', '')")

    def make_room(self) -> None:
        """Give the disk's space back, and start the server if it has ended."""
        self._ballast.unlink()
        wait_for(self._answers_or_starts)

    def replica(self) -> "Postgres":
        """Start a server that follows this one. What this one commits from here on is there too."""
        folder = self.replicas.enter_context(_folder(self.disk))
        with socket.create_server(("127.0.0.1", 0)) as free:
            made = replace(self, folder=folder, port=free.getsockname()[1])
        source = f"host=127.0.0.1 port={self.port} user={self.admin}"
        copy = ("-D", made._data, "-d", source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        made._run("pg_basebackup", *copy)
        made.start()
        self._execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._execute("SELECT pg_reload_conf()")
        wait_for(lambda: self._ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))
        return made

    def promote(self) -> None:
        """Let a replica be a server of its own."""
        self._run("pg_ctl", "-D", self._data, "-w", "promote")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def make(self) -> None:
        self._run("initdb", "-D", self._data, "-U", self.admin, "--auth=trust", "--no-sync")

    @property
    def _lock(self) -> Path:
        return self.folder / "data" / "postmaster.pid"

    @property
    def _leader(self) -> int:
        return int(self._lock.read_text().split()[0])

    @property
    def _ballast(self) -> Path:
        return self.folder / "data" / "ballast"

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _answers_or_starts(self) -> bool:
        with contextlib.suppress(OperationalError):
            self._execute("SELECT 1")
            return True
        if self._lock.exists() and _lives(self._leader):
            return False  # it recovers, or ends
        self._lock.unlink(missing_ok=True)
        self.start()
        return True

    def _write_until_it_fails(self, statement: str) -> None:
        with contextlib.suppress(OperationalError):
            while True:
                self._execute(statement)

    def _execute(self, statement: str) -> None:
        self._ask(statement)

    def _ask(self, statement: str) -> object:
        """Return the first value of a statement's rows, None without rows."""
        engine = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            answer = connection.execute(text(statement))
            return answer.scalar() if answer.returns_rows else None

    def _run(self, program: str, *words: str) -> None:
        command = [*_unprivileged(self.folder), str(programs() / program), *words]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)


@contextlib.contextmanager
def running(connections: int = 30, options: str = "", disk: int = 0, admin: str = "service") -> Iterator[Postgres]:
    """Run a server during the context; with `disk`, its data is on a disk of its own of so many MiB."""
    programs()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder(disk))
        with socket.create_server(("127.0.0.1", 0)) as free:
            server = Postgres(folder, free.getsockname()[1], connections, options, admin, disk)
            server.make()  # meanwhile nobody else takes the port
        stack.enter_context(server.replicas)
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):  # a test may have ended it
                server.stop()


@contextlib.contextmanager
def _folder(disk: int) -> Iterator[Path]:
    """Make a folder with `data` on a disk of its own of so many MiB, if any."""
    # Not below pytest's own folders, which are closed to PostgreSQL's account.
    with (
        tempfile.TemporaryDirectory(prefix="service-postgres-", ignore_cleanup_errors=True) as name,
        _disk(Path(name, "data"), disk) if disk else contextlib.nullcontext(),
    ):
        yield Path(name)


@contextlib.contextmanager
def _disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a small disk there; skip the test where nothing can be mounted."""
    folder.mkdir()
    words = ("mount", "-t", "tmpfs", "-o", f"size={size}m,mode=0700", "tmpfs", str(folder))
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here: it takes root")
    shutil.chown(folder, "postgres")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _lives(pid: int) -> bool:
    """Return whether a process runs; one that has ended, but that nobody has waited for, does not."""
    return Path(f"/proc/{pid}/root").exists()


def _children(leader: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(leader)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listing.stdout.split()]


def _unprivileged(folder: Path) -> list[str]:
    """Return the words that run PostgreSQL as its own account, since it refuses root, and give it the folder."""
    if os.getuid() != 0:
        return []
    owner = pwd.getpwnam("postgres")
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
