"""A test run that is ended from outside leaves no process behind, not even one that outlives its starter."""

import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.waiting import PATIENCE, wait_for
from tests.written import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

CONFTEST = "from tests.conftest import pytest_configure\n"
RUN = """
import subprocess, time, pathlib, pytest

@pytest.fixture
def daemon():
    daemon = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield daemon
    daemon.kill()
    pathlib.Path("stopped").touch()

def test_lasts(daemon):
    pathlib.Path("pid.new").write_text(str(daemon.pid))
    pathlib.Path("pid.new").rename("pid")
    time.sleep(1000)
"""


SHORT = ((signal.SIGTERM, 0), (signal.SIGKILL, 0), (signal.SIGKILL, 1))


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        pytest.param(*case, marks=() if case in SHORT else pytest.mark.long)
        for case in product((signal.SIGINT, signal.SIGTERM, signal.SIGKILL), (0, 1))
    ],
)
def test_nothing_is_left(tmp_path: Path, number: signal.Signals, workers: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_lasts.py").write_text(RUN)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as run:
        wait_for((tmp_path / "pid").exists, run.poll)
        os.kill(run.pid, number)
        run.wait(PATIENCE)
    daemon = int((tmp_path / "pid").read_text())
    wait_for(lambda: not is_sleeping(daemon), "the end of what the run started")
    if number is not signal.SIGKILL and not workers:
        assert (tmp_path / "stopped").exists(), "by the test's own fixture"


def is_sleeping(pid: int) -> bool:
    try:
        return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
