"""The whole service as a user runs it: real processes, real ports, a home of its own."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

import pytest
from playwright.sync_api import Browser

from activities.settings.home import Home
from bridge.machine import daemon_state
from bridge.machine.daemon_state import GroupPhase
from bridge.machine.ports import is_free
from bridge.operations.jobs import jobs
from bridge.operations.jobs.views import WholeTree
from bridge.operations.service import Service
from tests.e2e.browser import Person, person, started
from tests.e2e.typist import typist
from tests.unboxed import shell
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.e2e.script import Script

ROOT = Path(__file__).parents[2]
CLAIMS = "/tmp"
"""Where all runs of this machine claim ports, whatever their TMPDIR."""
LANES = iter(range(10_000, 32_000, 10))
CLAIMED: list[TextIO] = []
"""The claims of this process, released at its end."""


@dataclass(frozen=True)
class Installed:
    """The `service` command on one home, and a repository with a commit."""

    home: Path
    repo: Path
    tmp: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "TEMPORAL_"))}
        kept |= self.extra
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
        return kept | {
            "SERVICE_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "PATH": path,
            "PROOF": str(self.tmp / "proof"),
        }

    def __call__(self, *words: str, code: int = 0, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
        done = self.run(*words, input=input)
        assert done.returncode == code, f"service {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def run(self, *words: str, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
        """Run a command with any exit code, and check that it prints no traceback."""
        done = typist().type(words, self.environment, self.tmp, input)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").stdout)

    def agent(self, name: str, script: str) -> None:
        """Register an agent that is a shell script; `$PROOF` is a file it may append to."""
        (self.home / "config.toml").write_text(shell("PROOF"))
        self.register(name, self.program(name, script))

    def program(self, name: str, script: str) -> str:
        """Write a shell script, and return the command that runs it."""
        path = self.tmp / f"{name}.sh"
        path.write_text(script)
        return f"sh {path}"

    def register(
        self, name: str, command: str, *more: str, repo: str = "acme/shop"
    ) -> subprocess.CompletedProcess[str]:
        """Register an agent of the shell runtime, with the settings as they are."""
        words = ("--runtime", "shell", "--command", command, "--repo", repo)
        can = ("--capabilities", "ask,review,implement", "--autonomy", "workspace-write")
        return self("agent", "add", name, *words, *can, *more)

    def pid(self, member: str) -> int:
        state = daemon_state.status(self.seen.home).state
        assert state is not None
        return next(child.pid or 0 for child in state.children if child.name == member)

    def kill(self, member: str) -> None:
        """Kill a process with -9, and wait until the daemon has restarted it."""
        before = self.pid(member)
        os.kill(before, signal.SIGKILL)
        self.wait_for(lambda: self.pid(member) not in (0, before) and self.is_well())

    def is_well(self) -> bool:
        state = daemon_state.status(self.seen.home).state
        return state is not None and state.phase is GroupPhase.RUNNING

    def wait_for(self, what: Callable[[], object]) -> None:
        wait_for(what, lambda: self("daemon", "status").stdout)

    @cached_property
    def seen(self) -> Service:
        """The home, read in this process because waits poll it often."""
        return Service(Home(self.home))

    def tree(self, job_id: str) -> dict[str, Any]:
        """Return the JSON of `service job tree`."""
        return WholeTree.of(jobs.tree(self.seen, job_id)).model_dump(mode="json")

    def wait_until_ended(self, job_id: str) -> dict[str, Any]:
        self.wait_for(lambda: jobs.get(self.seen, job_id).ended_at is not None)
        shown: dict[str, Any] = self.json("job", "show", job_id)
        return shown

    @property
    def proof(self) -> str:
        path = self.tmp / "proof"
        return path.read_text() if path.exists() else ""


def lane() -> dict[str, str]:
    """Claim ports that no other test of this machine uses: a killed server finds its own free again."""
    names = ("SERVICE_TEMPORAL_PORT", "SERVICE_BRIDGE_PORT")
    for first in LANES:
        claim = Path(CLAIMS, f"service-tests-{os.getuid()}-{first}").open("w")  # noqa: SIM115
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if all(is_free(first + number) for number in range(len(names))):
                CLAIMED.append(claim)
                return {name: str(first + number) for number, name in enumerate(names)}
    raise AssertionError("no two ports are free")


def set_up(folder: Path) -> Installed:
    """Create a home and a registered repository, without running processes."""
    repo = folder / "shop"
    repo.mkdir()
    commit = (
        "git init -q -b main && git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m first"
    )
    subprocess.run(["sh", "-c", commit], cwd=repo, check=True)
    service = Installed(folder / "home", repo, folder, lane())
    service.home.mkdir(exist_ok=True)
    (service.home / "config.toml").write_text(shell())
    service("repo", "add", "acme/shop", str(repo))
    return service


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installed]:
    """Create a service of the test's own, and stop it in any case."""
    service = set_up(tmp_path)
    try:
        yield service
    finally:
        service("daemon", "stop")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the agents' programs that were not driven prominently, with the reason."""
    from tests.e2e.programs import NOT_DRIVEN, missing

    if any(NOT_DRIVEN in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())):
        terminalreporter.section("agents' programs that were NOT driven", red=True)
        for program, reason in missing().items():
            terminalreporter.line(f"{program}: {reason}", red=True)


@pytest.fixture(scope="module")
def outside_dev() -> Iterator[Path]:
    """Create a folder that programs in the sandbox of Codex can read: that has a /dev of its own, and tests may have
    their files in /dev/shm.
    """
    with TemporaryDirectory(prefix="service-tests-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as program:
        yield program


@pytest.fixture
def ann(script: "Script", browser: Browser) -> Iterator[Person]:
    """Open Ann's session at the dashboard of the module's service."""
    with person(browser, script.address) as someone:
        yield someone
