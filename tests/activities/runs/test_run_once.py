"""A run starts once, whatever dies around it, and every caller gets its one end."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from activities.runs.output import last_line
from activities.runs.supervised_run import PROGRESS_SECONDS, Claim, Progress, RunRequest, run
from activities.runs.supervisor import EndKind
from tests.activities.runs.conftest import RequestFor
from tests.waiting import until

pytestmark = pytest.mark.ruling("engine:runs")

CALLER = """
import asyncio, sys
from pathlib import Path
from activities.runs.supervised_run import RunRequest, run
request = RunRequest(Path(sys.argv[1]), ("sh", "-c", sys.argv[2]), Path(sys.argv[3]), {"PATH": sys.argv[4]})
print("calling", flush=True)
asyncio.run(run(request))
"""


def call_elsewhere(request: RunRequest) -> "subprocess.Popen[bytes]":
    """Start another process that calls `run`, as a worker does; return just before the call."""
    arguments = [str(request.run_dir), request.argv[2], str(request.cwd), request.env["PATH"]]
    caller = subprocess.Popen([sys.executable, "-c", CALLER, *arguments], stdout=subprocess.PIPE)
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"calling\n"
    return caller


@pytest.mark.parametrize("delay", [0.0, *(random.Random(4).uniform(0.001, 0.12) for _ in range(9))])
async def test_killing_the_caller_at_any_moment_runs_it_once(
    request_for: RequestFor, tmp_path: Path, delay: float
) -> None:
    request = request_for("echo ran >> log; sleep 0.15; exit 3")
    caller = await asyncio.to_thread(call_elsewhere, request)
    await asyncio.sleep(delay)
    caller.kill()
    end = await run(request)
    assert (end.kind, end.exit_code) == (EndKind.EXITED, 3)
    assert (tmp_path / "log").read_text() == "ran\n"
    assert caller.wait() == -signal.SIGKILL
    assert caller.stdout is not None
    caller.stdout.close()


async def test_many_concurrent_calls_start_one_command(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo ran >> log; sleep 0.2")
    ends = await asyncio.gather(*(run(request) for _ in range(6)))
    assert len(set(ends)) == 1
    assert (tmp_path / "log").read_text() == "ran\n"


async def test_a_finished_run_is_not_run_again(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo ran >> log")
    assert await run(request) == await run(request)
    assert (tmp_path / "log").read_text() == "ran\n"


async def test_cancelling_the_caller_leaves_the_run_alone(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo ran >> log; sleep 0.4; echo end >> log")
    task = asyncio.create_task(run(request))
    await until((tmp_path / "log").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run(request)).exit_code == 0
    assert (tmp_path / "log").read_text() == "ran\nend\n"


async def test_progress_tells_the_last_line(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.runs.supervised_run.PROGRESS_SECONDS", PROGRESS_SECONDS / 20)
    seen: list[Progress] = []
    request = request_for("echo one; echo; while [ ! -e seen ]; do sleep 0.02; done")

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if progress.stdout_bytes == len("one\n\n"):
            (tmp_path / "seen").touch()

    await run(request, watch)
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert seen[-1] == Progress(claim.pid or 0, len("one\n\n"), "one")


async def test_what_a_silent_run_said_is_not_read_again(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.runs.supervised_run.PROGRESS_SECONDS", PROGRESS_SECONDS / 100)
    seen: list[Progress] = []
    read: list[Path] = []

    def reading(stdout: Path) -> str:
        read.append(stdout)
        return last_line(stdout)

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if len([each for each in seen if each.last_line == "one"]) == 5:
            (tmp_path / "seen").touch()

    monkeypatch.setattr("activities.runs.supervised_run.last_line", reading)
    await run(request_for("echo one; while [ ! -e seen ]; do sleep 0.02; done"), watch)
    assert seen[-1].last_line == "one"
    assert len(read) <= 2


async def test_where_the_kernel_cannot_tell_it_polls(request_for: RequestFor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.pidfd_open")
    assert (await run(request_for("sleep 0.2; exit 8"))).exit_code == 8
