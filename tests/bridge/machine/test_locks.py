"""File locks with one holder at a time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.machine.locks import FileLock, holder


def _sleeper(lock: FileLock) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], pass_fds=(lock.fd,))


def test_the_second_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    lock = FileLock.take(tmp_path / "lock", wait=0)
    assert lock is not None
    assert FileLock.take(tmp_path / "lock", wait=0.05) is None
    assert holder(tmp_path / "lock") == os.getpid()
    lock.release()
    assert holder(tmp_path / "lock") is None


def test_nobody_holds_what_never_was(tmp_path: Path) -> None:
    assert holder(tmp_path / "lock") is None
    assert not (tmp_path / "lock").exists()


@pytest.mark.ruling("engine:embedded")
def test_a_process_that_inherits_it_holds_it_after_we_let_go_and_until_it_dies(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock.take(path, wait=0)
    assert lock is not None
    with _sleeper(lock) as child:
        lock.mark(child.pid)
        lock.release()
        assert holder(path) == child.pid
        assert FileLock.take(path, wait=0.05) is None
        child.kill()
    again = FileLock.take(path, wait=0)
    assert again is not None
    again.release()
