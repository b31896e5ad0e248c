"""A run of cases leaves no process behind, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.cases import ROOT
from tests.waiting import wait_for


def homes(mark: str) -> dict[int, Path]:
    """Return the processes with this in their environment that belong to a service, and its home."""
    marked = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = dict(line.split("=", 1) for line in path.read_text().split("\0") if "=" in line)
        except (OSError, UnicodeDecodeError):  # it has ended, or is of another account
            continue
        if mark in environment and "SERVICE_HOME" in environment:
            marked[int(path.parent.name)] = Path(environment["SERVICE_HOME"])
    return marked


@pytest.mark.long
def test_a_killed_run_of_cases_leaves_no_daemon() -> None:
    mark = f"RUN_OF_{os.getpid()}"
    command = [sys.executable, "-P", "-m", "tests.chaos", "--case", "stopped, command started, 9, none"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), mark: "1"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet) as run:
        try:
            wait_for(lambda: any((home.parent / "plans/marks").exists() for home in homes(mark).values()))
            run.kill()
            run.wait()
            wait_for(lambda: not homes(mark), lambda: homes(mark), 60)
        finally:
            for pid in homes(mark):
                os.kill(pid, signal.SIGKILL)
