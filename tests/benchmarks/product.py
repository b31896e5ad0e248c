"""Installed services to measure: a daemon with all its members, each with its own home, of any revision."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import no_op_agents, product_player
from tests.benchmarks.own_processes import PATIENCE, Talk, environment, free_port, running, until_gone
from tests.unboxed import shell

ROOT = Path(__file__).parents[2]
_PORTS = ("SERVICE_TEMPORAL_PORT", "SERVICE_BRIDGE_PORT")
_SERVICE = (sys.executable, "-P", "-c", "from cli.main import run; run()")
"""Command that runs the code of the environment."""

_SETTINGS = f"""\
[orchestrate]
max_delegation_width = 64
max_delegation_total_jobs = 64

[worker]
max_parallel_jobs = {no_op_agents.AT_ONCE}
"""
WITHOUT_BOX = shell()
"""Settings for a service whose agents run in no box."""


@dataclass(frozen=True)
class Installed:
    """A running service, and its client."""

    name: str
    folder: Path
    address: str
    """Address of its Temporal server."""
    talk: Talk
    pids: dict[str, int]
    """Process ids of the daemon, its members and the client."""

    @property
    def databases(self) -> dict[str, Path]:
        return {"temporal.db": self.folder / "home/temporal.db", "store.db": self.folder / "home/store.db"}


@contextmanager
def revision(name: str, folder: Path) -> Iterator[Path]:
    """Check another revision out while it is measured."""
    git, path = ("git", "-C", str(ROOT), "worktree"), folder / "code"
    subprocess.run([*git, "add", "--quiet", "--detach", str(path), name], check=True)
    try:
        yield path
    finally:
        subprocess.run([*git, "remove", "--force", str(path)], check=True)


@contextmanager
def installed(name: str, code: Path, folder: Path, sizes: Sequence[int], more: str = "") -> Iterator[Installed]:
    """Run a checkout's service with its agents and `more` settings; finally stop it with everything it started."""
    home = folder / "home"
    home.mkdir(mode=0o700, parents=True)
    (home / "config.toml").write_text(_SETTINGS + more)
    ports = {port: free_port() for port in _PORTS}
    given = environment(code, SERVICE_HOME=home, **ports)
    _register(folder, given, sizes)
    try:
        with running((*_SERVICE, "daemon", "run"), given, folder / "daemon.log") as daemon:
            state = _until_up(home, daemon, folder / "daemon.log")
            log = folder / "player.log"
            player_of_code = str(code / "tests/benchmarks/product_player.py")
            with running((sys.executable, "-P", player_of_code), given, log, talks=True) as player:
                members = {child["name"]: int(child["pid"]) for child in state["children"]}
                pids = members | {"daemon": daemon.pid, "who asks": player.pid}
                yield Installed(name, folder, state["temporal_address"], Talk(player, log), pids)
    finally:
        until_gone(folder)


@contextmanager
def bare(address: str, folder: Path) -> Iterator[tuple[Talk, int]]:
    """Run bare workflows on this server with the product's programs; yield the client, and the workers' process id."""
    log = folder / "bare.log"
    words = (sys.executable, "-P", "-m", "tests.benchmarks.bare_player", address, str(folder))
    with running(words, environment(ROOT), log, talks=True) as player:
        yield Talk(player, log), player.pid


def _register(folder: Path, given: dict[str, str], sizes: Sequence[int]) -> None:
    """Register a repository with a commit, coordinators of so many legs, and the legs' agent."""
    no_op_agents.write(folder, sizes)
    commit = "git init -q -b main && git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m one"
    repo = folder / "shop"
    repo.mkdir()
    subprocess.run(["sh", "-c", commit], cwd=repo, check=True)
    _type(given, "repo", "add", product_player.REPO, str(repo))
    done = no_op_agents.answer_of(folder, None)
    for name, legs in (("dev", None), *((f"lead-{legs}", legs) for legs in sizes)):
        program = " ".join(no_op_agents.command(folder, no_op_agents.answer_of(folder, legs), done))
        words = ("--runtime", "shell", "--command", program, "--repo", product_player.REPO, "--capabilities", "ask")
        _type(given, "agent", "add", name, *words)


def _type(given: dict[str, str], *words: str) -> None:
    subprocess.run([*_SERVICE, *words], env=given, check=True, stdout=subprocess.DEVNULL)


def _until_up(home: Path, daemon: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    """Return the daemon's state file once everything runs."""
    deadline, path = time.monotonic() + PATIENCE, home / "daemon.json"
    while daemon.poll() is None and time.monotonic() < deadline:
        if path.exists() and (state := json.loads(path.read_text()))["phase"] == "running":
            return dict(state)
        time.sleep(0.05)
    raise SystemExit(f"the service does not come up:\n{log.read_text()[-3000:]}")
