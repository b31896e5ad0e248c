"""Real processes, each run with a mark of its own."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from activities.runs import spawn
from activities.runs.supervised_run import RunRequest

ENV = {"PATH": os.environ["PATH"]}
RequestFor = Callable[..., RunRequest]


@pytest.fixture
def request_for(tmp_path: Path) -> RequestFor:
    """Build a request for a shell script, or a Python program, with a short grace."""

    def build(script: str, *, python: bool = False, **changes: object) -> RunRequest:
        argv = (sys.executable, "-I", "-S", "-c", script) if python else ("sh", "-c", script)
        run_dir = tmp_path / "runs" / f"job-{uuid.uuid4().hex[:12]}.1"
        given = {"run_dir": run_dir, "argv": argv, "cwd": tmp_path, "env": ENV, "grace_seconds": 0.3, **changes}
        return RunRequest(**given)  # type: ignore[arg-type]

    return build


@pytest.fixture
def server() -> Iterator[spawn.ForkServer]:
    """Start a fork server that no other test has used."""
    spawn.current().end()
    made = spawn.current()
    yield made
    made.end()
