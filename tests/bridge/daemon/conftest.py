"""A home for each daemon, a fake worker that only reports ready, and checks that no process is left."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.daemon import server
from bridge.daemon.options import DaemonOptions
from bridge.machine.daemon_state import status
from bridge.machine.locks import holder
from tests.waiting import wait_for

FAKE_WORKER = """
import json, os, pathlib, time
home = pathlib.Path(os.environ["SERVICE_HOME"])
print("told to use", os.environ.get("SERVICE_TEMPORAL_ADDRESS"), flush=True)
(home / "worker.ready").write_text(json.dumps({"pid": os.getpid()}))
while True:
    time.sleep(1)
    os.utime(home / "worker.ready")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Create an empty home, without variables that name another cluster, and stop whatever ran in it."""
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "SERVICE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    there = Home(tmp_path / "home").ensure()
    monkeypatch.setenv("SERVICE_HOME", str(there.root))
    yield there
    if (pid := holder(there.daemon_lock)) is not None:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: holder(there.server_lock) is None, "the end of the server")


@pytest.fixture
def options() -> DaemonOptions:
    """Return options with free ports and a worker that does nothing."""
    return DaemonOptions(temporal_port=0, worker_command=(sys.executable, "-c", FAKE_WORKER))


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def children(home: Home) -> dict[str, int]:
    """Return the pids of the running members by name."""
    state = status(home).state
    assert state is not None
    return {child.name: child.pid for child in state.children if child.pid is not None}


def pid_in(path: Path) -> int:
    """Wait for a lock file or a small JSON file, and return its pid."""
    wait_for(lambda: path.exists() and path.read_text().strip() != "", f"a pid in {path.name}")
    return int(json.loads(path.read_text()))


def describe_namespace(address: str) -> dict[str, str]:
    """Return the server's retention and search attributes."""
    where = ("--address", address, "--namespace", "service", "--output", "json")
    completed = subprocess.run(
        [str(server.find_program()), "operator", "namespace", "describe", *where], capture_output=True, check=True
    )
    config = json.loads(completed.stdout)["config"]
    return {"retention": config["workflowExecutionRetentionTtl"], **_flip(config["customSearchAttributeAliases"])}


def _flip(aliases: dict[str, str]) -> dict[str, str]:
    return {name: column.rstrip("0123456789") for column, name in aliases.items()}
