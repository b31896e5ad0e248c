"""The state of a run, seen from outside."""

import asyncio
import time
from pathlib import Path

import pytest

from activities.runs.output import last_line
from activities.runs.status import RunStage, RunStatus, look
from activities.runs.supervised_run import RunRequest, run, stop
from tests.activities.runs.conftest import RequestFor
from tests.waiting import until

pytestmark = pytest.mark.ruling("engine:live")

TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7b/Q+5zS0123456789abcdefghijklmnopqrstuvwxyzABCD\n" * 40


async def test_a_run_waits_runs_and_has_ended(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for(f"echo first; echo 'push with {TOKEN}'; echo > up; sleep 600")
    assert look(request.run_dir) == RunStatus(RunStage.WAITING)
    task = asyncio.create_task(run(request))
    await until((tmp_path / "up").exists)
    seen = look(request.run_dir)
    assert (seen.stage, seen.last_line) == (RunStage.RUNNING, "push with [redacted]")
    assert seen.output_bytes == len(f"first\npush with {TOKEN}\n")
    assert seen.last_output_at == pytest.approx(time.time(), abs=60)
    await stop(request.run_dir, 0.1)
    await task
    assert look(request.run_dir).stage is RunStage.ENDED


async def test_silence_is_told_from_output(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo > up; sleep 600")
    task = asyncio.create_task(run(request))
    await until((tmp_path / "up").exists)
    assert look(request.run_dir) == RunStatus(RunStage.RUNNING)
    await stop(request.run_dir, 0.1)
    await task


async def test_the_program_that_repairs_is_the_one_to_look_at(request_for: RequestFor) -> None:
    first = request_for("echo a draft")
    await run(first)
    repair = RunRequest(
        **{
            **vars(first),
            "run_dir": first.run_dir.with_name(first.run_dir.name + ".repair"),
            "argv": ("echo", "repaired"),
        }
    )
    await run(repair)
    assert look(first.run_dir).last_line == "repaired"
    other = first.run_dir.with_name(first.run_dir.name + ".1")
    await run(RunRequest(**{**vars(repair), "run_dir": other, "argv": ("echo", "another job")}))
    assert look(first.run_dir).last_line == "repaired"


@pytest.mark.ruling("A12")
@pytest.mark.parametrize(
    "output",
    [
        f"export GITHUB_TOKEN={TOKEN}\n",
        "x" * 190 + f" {TOKEN}\n",
        KEY,
        KEY + "-----END RSA PRIVATE KEY-----\n",
        "padding " * 2050 + f"{TOKEN} {'word ' * 3260}\n",
    ],
    ids=["named", "at the cut", "half a key", "a key", "cut by the window"],
)
def test_the_last_line_keeps_no_secret_that_a_cut_would_hide(tmp_path: Path, output: str) -> None:
    (tmp_path / "out").write_text(output)
    line = last_line(tmp_path / "out")
    assert line
    assert "a1B2" not in line
    assert "MIIE" not in line
