"""Work on agents' files is done in helper processes, which are killed at their deadline whatever they are doing."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest

from activities.git.merges.into_work_folder import MergeConflict
from activities.host import helper_process as helpers
from activities.host import slots
from activities.host.helper_process import TooMuchError, apart
from activities.host.slots import in_turn
from activities.runs.os_processes import identity
from tests.waiting import until, wait_for
from workflows.model.errors import RefusedError

pytestmark = [pytest.mark.ruling("N3"), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]


def refuse() -> None:
    raise MergeConflict("a", ("b",), ("x.py",))


def go_in_circles() -> None:
    """Loop for ever in C, where no handler of Python's would ever run."""
    re.fullmatch(r"(a+)+b", "a" * 60)


def nest(levels: int) -> int:
    return nest(levels + 1)


def die_once(mark: Path) -> str:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die_and_then_with_the_forker(marks: Path) -> str:
    """Die in the first call, and in the second with the process that forks helpers."""
    (marks / str(number := len(list(marks.iterdir())))).touch()
    if number < 2:
        os.kill(os.getppid() if number else os.getpid(), signal.SIGKILL)
        time.sleep(600)
    return "done"


def stop_once(mark: Path) -> str:
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    return "done"


def go_in_circles_for(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass


def wait_until(mark: Path, pid: Path | None = None) -> None:
    if pid:
        pid.write_text(str(os.getpid()))
    wait_for(mark.exists)


def test_what_a_function_returns_and_raises_comes_from_another_process_which_is_used_again() -> None:
    first = apart(60, os.getpid)
    assert first != os.getpid()
    assert apart(60, os.getpid) == first
    with pytest.raises(MergeConflict, match="merging a conflicts with b") as caught:
        apart(60, refuse)
    assert (caught.value.files, caught.value.hint) == (("x.py",), "git merge b (on a), resolve, commit")


def test_a_deadline_ends_what_hears_nothing() -> None:
    began = time.monotonic()
    with pytest.raises(TooMuchError, match="took longer than 1 s"):
        apart(1, go_in_circles)
    assert time.monotonic() - began < helpers.MARGIN_SECONDS, "by the helper's own timer"
    assert apart(60, len, "abc") == 3


def test_what_takes_too_much_memory_or_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(TooMuchError, match="too much memory"):
        apart(60, bytearray, helpers.MEMORY + 1)
    with pytest.raises(RefusedError, match="nested too deeply"):
        apart(60, nest, 0)


def test_a_helper_that_is_killed_is_replaced_once(tmp_path: Path) -> None:
    assert apart(60, die_once, tmp_path / "died") == "done"
    with pytest.raises(TooMuchError, match="was killed"):
        apart(60, os._exit, 1)


@pytest.mark.parametrize("late", [False, True])
def test_a_helper_that_dies_with_its_forker_is_no_second_one_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    """The cases `pair, output read, 4, kill helper` and `verify, folder recorded, 3, kill helper` of the matrix of
    faults, which kills one after another; the death of one that forks may show later than that of its helpers.
    """
    if late:
        monkeypatch.setattr(subprocess.Popen, "poll", lambda process: process.returncode)
    assert apart(60, die_and_then_with_the_forker, tmp_path) == "done"


def test_a_helper_that_ended_while_it_was_idle_is_no_try(tmp_path: Path) -> None:
    idle = apart(60, os.getpid)
    os.kill(idle, signal.SIGKILL)
    wait_for(lambda: identity(idle) is None)
    assert apart(60, die_once, tmp_path / "died") == "done"


def test_a_helper_without_calls_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "IDLE_SECONDS", 0.01)
    ours, theirs = Pipe()
    with ours, theirs:
        helpers._handle_calls(theirs)
        assert ours.recv() == os.getpid()


def test_helpers_whose_forker_was_killed_are_replaced() -> None:
    before, helper = apart(60, os.getppid), apart(60, os.getpid)
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: identity(helper) is None)
    assert apart(60, os.getppid) not in (before, 1)


def test_helpers_whose_forker_is_frozen_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "FROZEN_SECONDS", 0.6)
    before = apart(60, os.getppid)
    apart(60, go_in_circles_for, 2 * helpers.SLOW_SECONDS)  # is not kept, so that the next call needs a fork
    os.kill(before, signal.SIGSTOP)
    began = time.monotonic()
    assert apart(600, os.getppid) != before
    assert time.monotonic() - began < 600
    wait_for(lambda: identity(before) is None)


def test_a_frozen_helper_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "FROZEN_SECONDS", 0.6)
    assert apart(600, stop_once, tmp_path / "pid") == "done"
    stopped = int((tmp_path / "pid").read_text())
    wait_for(lambda: identity(stopped) is None)


async def test_a_long_wait_for_a_helper_gives_up_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "SLOW_SECONDS", 0.05)
    pids = [tmp_path / str(number) for number in range(2 * slots.AT_ONCE)]
    held = [asyncio.create_task(in_turn(apart, 600.0, wait_until, tmp_path / "go", pid)) for pid in pids]
    try:
        await until(lambda: all(pid.exists() for pid in pids), "more of them than have a turn at once")
        assert await in_turn(apart, 60.0, len, "abc") == 3
        assert not any(task.done() for task in held)
    finally:
        (tmp_path / "go").touch()
        await asyncio.gather(*held)


def test_helpers_end_with_the_process_that_they_work_for(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\nfrom activities.host.helper_process import apart\n"
        "from tests.activities.host.test_helper_process import wait_until\n"
        f"here = pathlib.Path({str(tmp_path)!r})\napart(600.0, wait_until, here / 'never', here / 'pid')\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", program])
    try:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        helper = int((tmp_path / "pid").read_text())
        assert identity(helper)
    finally:
        worker.kill()
        worker.wait()
    wait_for(lambda: identity(helper) is None)


def test_a_helper_goes_before_the_worker_when_memory_runs_out() -> None:
    assert int(apart(60, Path.read_text, Path("/proc/self/oom_score_adj"))) == int(helpers.FIRST_TO_GO)
