"""Every way a command can end; nothing of it is left."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.runs.os_processes import identity, kill_all, with_mark
from activities.runs.output import last_line
from activities.runs.supervised_run import Claim, Progress, RunEnd, RunRequest, mark_of, read_end, run, stop
from activities.runs.supervisor import RESERVED_BYTES, EndKind
from tests.activities.runs.conftest import RequestFor
from tests.waiting import until

pytestmark = pytest.mark.ruling("engine:runs")

ESCAPE = """
import os, pathlib, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pathlib.Path("escaped").write_text(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not (pathlib.Path("escaped").exists() and pathlib.Path("escaped").read_text()):
    time.sleep(0.01)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system that is full after 128 KiB."""
    tmp_path /= "disk"
    tmp_path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(tmp_path)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs Linux and privileges")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


async def started(request: RunRequest, sign: Path) -> "asyncio.Task[RunEnd]":
    """Start a run and wait until its command has made a file."""
    task = asyncio.create_task(run(request))
    await until(lambda: sign.exists() or task.done())
    return task


async def test_prompt_exit_code_and_streams(request_for: RequestFor) -> None:
    prompt = b"x" * 1_500_000
    end = await run(request_for("wc -c; echo oops >&2; exit 7", prompt=prompt))
    assert (end.kind, end.exit_code, end.signal, end.survivors) == (EndKind.EXITED, 7, None, 0)
    assert end.stdout.read_text().strip() == "1500000"
    assert end.stderr.read_text() == "oops\n"
    assert end.started_at is not None
    assert end.ended_at is not None
    assert end.started_at <= end.ended_at


async def test_without_a_prompt_stdin_is_empty(request_for: RequestFor) -> None:
    end = await run(request_for("wc -c"))
    assert end.stdout.read_text().strip() == "0"


async def test_the_environment_is_the_given_one_and_the_mark(request_for: RequestFor) -> None:
    request = request_for("env", env={"PATH": os.environ["PATH"], "ONE": "1"})
    end = await run(request)
    names = {line.partition("=")[0] for line in end.stdout.read_text().splitlines()}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {"PATH", "ONE", "SERVICE_RUN_MARK"}
    assert f"SERVICE_RUN_MARK={mark_of(request.run_dir)}\n" in end.stdout.read_text()


async def test_death_by_signal_is_told_from_an_exit_code(request_for: RequestFor) -> None:
    end = await run(request_for("kill -SEGV $$"))
    assert (end.kind, end.exit_code, end.signal) == (EndKind.EXITED, None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"argv": ("no-such-agent",)}, "no-such-agent"),
        ({"cwd": Path("/no/such/place")}, "/no/such/place"),
        ({"cwd": Path("/no/such", "\U0001f4c1" * 5000)}, "the working directory /no/such/\U0001f4c1"),
    ],
)
async def test_what_cannot_start_says_why(request_for: RequestFor, changes: dict[str, object], named: str) -> None:
    end = await run(request_for("true", **changes))
    assert end.kind is EndKind.NOT_STARTED
    assert named in end.error
    assert (end.run_dir / "exit.json").stat().st_size < RESERVED_BYTES, "a full disk must not lose it"


async def test_deadline_kills_what_ignores_term(request_for: RequestFor) -> None:
    end = await run(request_for("trap '' INT TERM; echo up; while :; do sleep 0.05; done", timeout_seconds=1.5))
    assert (end.kind, end.signal, end.survivors) == (EndKind.TIMED_OUT, signal.SIGKILL, 0)
    assert end.stdout.read_text() == "up\n"


@pytest.mark.parametrize("trapped", ["trap 'echo bye; exit 5' INT", "trap '' INT; trap 'echo bye; exit 5' TERM"])
async def test_deadline_leaves_time_to_end_well(request_for: RequestFor, trapped: str) -> None:
    request = request_for(f"{trapped}; while :; do sleep 0.02; done", timeout_seconds=1.5)
    end = await run(RunRequest(**{**vars(request), "grace_seconds": 2.0}))
    assert (end.kind, end.exit_code) == (EndKind.TIMED_OUT, 5)
    assert end.stdout.read_text() == "bye\n"


@pytest.mark.parametrize("ending", ["", "time.sleep(600)", "os.kill(os.getpid(), signal.SIGKILL)"])
async def test_double_fork_and_new_session_do_not_escape(request_for: RequestFor, tmp_path: Path, ending: str) -> None:
    end = await run(request_for(ESCAPE + ending, python=True, timeout_seconds=3.0 if "600" in ending else 30.0))
    assert end.kind is (EndKind.TIMED_OUT if "600" in ending else EndKind.EXITED)
    assert identity(int((tmp_path / "escaped").read_text())) is None


async def test_a_grandchild_that_hides_its_mark_does_not_escape(request_for: RequestFor, tmp_path: Path) -> None:
    await run(request_for("env -i setsid sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do :; done"))
    assert identity(int((tmp_path / "pid").read_text())) is None


async def test_closed_streams_do_not_end_the_run(request_for: RequestFor, tmp_path: Path) -> None:
    end = await run(request_for("exec <&- >&- 2>&-; sleep 0.3; echo done > late; exit 4"))
    assert (end.kind, end.exit_code) == (EndKind.EXITED, 4)
    assert (tmp_path / "late").exists()


async def test_binary_output_is_kept_byte_by_byte(request_for: RequestFor) -> None:
    seen: list[Progress] = []
    script = "import os, time; os.write(1, bytes(range(256)) * 4096); time.sleep(0.1)"
    end = await run(request_for(script, python=True), seen.append)
    assert end.stdout.read_bytes() == bytes(range(256)) * 4096
    assert seen
    assert isinstance(last_line(end.stdout), str)


async def test_a_fork_bomb_of_some_hundred_is_put_out(request_for: RequestFor) -> None:
    bomb = "f() { for i in 1 2 3 4 5; do [ $1 -gt 0 ] && f $(($1-1)) & done; sleep 600; }; f 2 & f 2 & f 2 & sleep 0.2"
    request = request_for(bomb)
    end = await run(request)
    assert end.survivors == 0
    assert with_mark(mark_of(request.run_dir)) == set()


async def test_stop_ends_the_tree_and_counts_as_cancelled(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for(ESCAPE + "time.sleep(600)", python=True)
    task = await started(request, tmp_path / "escaped")
    end = await stop(request.run_dir, grace=0.2)
    assert end.kind is EndKind.CANCELLED
    assert await task == end == await run(request)
    assert identity(int((tmp_path / "escaped").read_text())) is None


async def test_the_grace_of_stop_overrules_the_request(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("trap 'sleep 0.4; exit 9' INT; echo > up; while :; do sleep 0.02; done", grace_seconds=0.0)
    task = await started(request, tmp_path / "up")
    end = await stop(request.run_dir, grace=30.0)
    assert (end.kind, end.exit_code) == (EndKind.CANCELLED, 9)
    await task


async def test_stopped_before_it_started_it_never_starts(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo > ran")
    assert (await stop(request.run_dir)).kind is EndKind.CANCELLED
    assert (await run(request)).kind is EndKind.CANCELLED
    assert not (tmp_path / "ran").exists()


async def test_a_full_disk_does_not_lose_the_outcome(request_for: RequestFor, small_disk: Path) -> None:
    request = request_for("head -c 1000000 /dev/zero; exit 6", run_dir=small_disk / f"job-{uuid.uuid4().hex}.1")
    end = await run(request)
    assert (end.kind, end.exit_code) == (EndKind.EXITED, 6)
    assert 0 < end.stdout.stat().st_size < 128 * 1024
    assert read_end(request.run_dir) == end


async def test_a_dead_supervisor_means_unknown_and_nothing_goes_on(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo >> ran; setsid sleep 600 & sleep 600")
    task = await started(request, tmp_path / "ran")
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert claim.pid is not None
    os.kill(claim.pid, signal.SIGKILL)
    end = await task
    assert end.kind is EndKind.UNKNOWN
    assert str(claim.pid) in end.error
    assert with_mark(mark_of(request.run_dir)) == set()
    assert (await run(request)).kind is EndKind.UNKNOWN
    assert (tmp_path / "ran").read_text() == "\n"


async def test_a_reused_pid_is_not_taken_for_the_supervisor(request_for: RequestFor) -> None:
    request = request_for("true")
    request.run_dir.mkdir(parents=True)
    (request.run_dir / "claim").write_text(f'{{"pid": {os.getpid()}, "start": "1", "at": 0}}')
    assert (await stop(request.run_dir)).kind is EndKind.UNKNOWN  # and this very process gets no signal


@pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's")
async def test_nothing_is_left_to_be_reaped_by_others(request_for: RequestFor) -> None:
    request = request_for("for i in 1 2 3; do (setsid true &); done; sleep 0.1")
    await run(request)
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert not claim.alive


@pytest.mark.skipif(sys.platform != "linux", reason="marks are found in /proc")
async def test_what_was_started_on_the_runs_behalf_by_others_is_found_by_its_mark(request_for: RequestFor) -> None:
    request = request_for("true")
    elsewhere = await asyncio.to_thread(
        subprocess.Popen, ["sleep", "600"], env={**request.env, "SERVICE_RUN_MARK": mark_of(request.run_dir)}
    )
    await run(request)
    assert elsewhere.wait(10) == -signal.SIGKILL


async def test_a_supervisor_that_does_not_answer_cannot_hold_up_a_stop(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.runs.supervised_run.STOP_MARGIN_SECONDS", 0.2)
    request = request_for("echo > up; sleep 600")
    task = await started(request, tmp_path / "up")
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert claim.pid is not None
    os.kill(claim.pid, signal.SIGSTOP)
    assert (await stop(request.run_dir, grace=0.0)).kind is EndKind.UNKNOWN
    assert (await task).kind is EndKind.UNKNOWN
    assert with_mark(mark_of(request.run_dir)) == set()


def test_a_process_that_is_hidden_while_it_executes_a_program_is_killed_too() -> None:
    """Meanwhile its environment, by which it is found, is empty."""
    parent, child = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    looks = iter([{parent.pid}, {parent.pid}, set[int]()])

    def find() -> set[int]:
        return next(looks, {child.pid} if child.poll() is None else set())

    assert kill_all(find) == 0
    for process in (parent, child):
        assert process.wait(10) == -signal.SIGKILL
