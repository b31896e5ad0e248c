"""Machines of a fleet: homes with names, ports and network lines of their own, on one server and one database."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from bridge.machine import daemon_state
from tests.e2e.conftest import Installed, lane
from tests.fleet.lines import Line
from tests.postgres import Postgres
from tests.unboxed import shell

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")


@dataclass(frozen=True)
class Machine(Installed):
    """One host of a fleet: `service` is typed there by calling it."""

    name: str = ""
    lines: tuple[Line, ...] = ()
    """Its lines to the Temporal server and to the database."""
    common: str = ""
    """The settings that all hosts have."""

    def configure(self, more: str = "", **worker: str) -> None:
        """Write its `config.toml`: the fleet's settings, those of its worker, and `more`."""
        own = "".join(f"{key} = {value}\n" for key, value in {"host": f'"{self.name}"', **worker}.items())
        agents = shell("PROOF", "PLANS", "HOST")
        (self.home / "config.toml").write_text(f"{agents}{self.common}[worker]\n{own}{more}")

    @property
    def environment(self) -> dict[str, str]:
        known = super().environment
        return known | {"PYTHONPATH": f"{self._first}{os.pathsep}{known['PYTHONPATH']}"}

    @property
    def _first(self) -> Path:
        """Return the folder that its programs import from before all others."""
        return self.tmp / "first"

    def install(self, release: str) -> None:
        """Let what starts here from now on be this code under another version."""
        for former in self._first.glob("*.dist-info"):
            shutil.rmtree(former)
        place = self._first / f"delegation_service-{release}.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: delegation-service\nVersion: {release}\n")

    def clock(self, seconds: float) -> None:
        """Let the clock of what starts here from now on be wrong by so many seconds."""
        self._first.mkdir(exist_ok=True)
        wrong = f"import time\nright = time.time\ntime.time = lambda: right() + {seconds}\n"
        (self._first / "sitecustomize.py").write_text(wrong)

    def cut_off(self) -> None:
        """Cut it off from server and database; its agents run on."""
        for line in self.lines:
            line.cut()

    def connect(self) -> None:
        for line in self.lines:
            line.mend()

    def crash(self) -> None:
        """Kill everything that runs on it with -9: the daemon, its members, the agents."""
        state = daemon_state.status(self.seen.home).state
        assert state is not None
        os.kill(state.pid, signal.SIGSTOP)  # it starts nothing again
        kill_all_of(self.home)


@dataclass
class Fleet:
    """A namespace, a database, and the machines on them."""

    folder: Path
    temporal: str
    """The server's address."""
    postgres: Postgres
    database: str
    namespace: str
    machines: list[Machine] = field(default_factory=list)

    def host(self, name: str, more: str = "", **worker: str) -> Machine:
        """Make a host; the first one's seal key is every other's."""
        made = self.machine(name)
        made.home.mkdir(mode=0o700)
        made.configure(more, **worker)
        if len(self.machines) > 1:
            key = made.home / "seal.key"
            key.write_bytes((self.machines[0].home / "seal.key").read_bytes())
            key.chmod(0o600)
        else:
            made("cluster", "init")
        return made

    def machine(self, name: str) -> Machine:
        """Make a machine without a home."""
        tmp = self.folder / name
        tmp.mkdir()
        address, port = self.temporal.rsplit(":", 1)
        lines = (Line((address, int(port))), Line(("127.0.0.1", self.postgres.port)))
        url = self.postgres.database(self.database, lines[1].port)
        common = f'[temporal]\naddress = "{lines[0].address}"\nnamespace = "{self.namespace}"\n[store]\nurl = "{url}"\n'
        made = Machine(tmp / "home", tmp / "shop", tmp, lane(), name, lines, common)
        self.machines.append(made)
        return made

    def hub(self) -> Path:
        """Create a bare repository with a commit, as a remote that all hosts reach."""
        bare, work = self.folder / "hub.git", self.folder / "hub-work"
        for words in (
            ("init", "-q", "--bare", "-b", "main", str(bare)),
            ("clone", "-q", str(bare), str(work)),
            ("-C", str(work), "commit", "-q", "--allow-empty", "-m", "first"),
            ("-C", str(work), "push", "-q", "origin", "HEAD:main"),
        ):
            subprocess.run([*GIT, *words], check=True, capture_output=True)
        return bare

    def close(self) -> None:
        for machine in self.machines:
            machine.connect()
            machine("daemon", "stop")
            kill_all_of(machine.home)
            for line in machine.lines:
                line.close()


@contextlib.contextmanager
def founded(folder: Path, temporal: str, database: Postgres) -> Iterator[Fleet]:
    """Create a fleet with a namespace and a database of its own."""
    name = f"fleet-{uuid4().hex[:8]}"
    database.create(name)
    made = Fleet(folder, temporal, database, name, name)
    try:
        yield made
    finally:
        made.close()


def checkout(machine: Machine) -> Path:
    """Create a repository with a commit on a machine."""
    subprocess.run([*GIT, "init", "-q", "-b", "main", str(machine.repo)], check=True)
    subprocess.run([*GIT, "-C", str(machine.repo), "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    return machine.repo


def kill_all_of(home: Path) -> None:
    """Kill what works for a home."""
    for pid in _of_home(home):
        with contextlib.suppress(ProcessLookupError):  # it ended with one that was killed before it
            os.kill(pid, signal.SIGKILL)


def _of_home(home: Path) -> list[int]:
    """Return the processes that work for a home, agents included."""
    marks, pids = {f"SERVICE_HOME={home}".encode(), f"PROOF={home.parent / 'proof'}".encode()}, []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (path / "environ").read_bytes(), (path / "cmdline").read_bytes()
        except OSError:  # it has ended, or is of another account
            continue
        ours = marks.intersection(environment.split(b"\0")) or str(home).encode() in command
        if ours and int(path.name) != os.getpid() and b"typist" not in command:
            pids.append(int(path.name))
    return pids
