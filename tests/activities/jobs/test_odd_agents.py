"""Agents that misbehave, and the outcome of each: this table is the documentation."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.agents.shell import Shell
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.runs import run_folders
from activities.runs.os_processes import identity, with_mark
from activities.runs.supervised_run import mark_of, stop
from activities.store import attempt_rows, claim_rows
from activities.store.attempt_rows import Offered
from tests.activities.jobs.conftest import Stage
from tests.unboxed import unboxed
from tests.waiting import until
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome
from workflows.model.long_texts import Text
from workflows.model.states import JobState

pytestmark = [pytest.mark.ruling("engine:runs"), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

START = """
import os, pathlib, resource, signal, subprocess, sys, time
home = pathlib.Path(os.environ["HOME"])
(home / "count").open("a").write("x")
def good(): sys.stdout.write('{"service_result": {"decision": "approved", "summary": "fine"}}\\n'); sys.stdout.flush()
def note(): (home / "pid").write_text(str(os.getpid())); time.sleep(600)
def ignore(*numbers): [signal.signal(number, signal.SIG_IGN) for number in numbers]
"""
GRACE = 0.6
NO_RESULT = "the repair returned the same output, byte for byte"


@dataclass(frozen=True)
class Odd:
    """An agent, and its outcome."""

    does: str
    script: str
    state: JobState
    reason: str = ""
    timeout: float | None = None
    runs: int = 1
    """Number of its program's runs; two if a repair follows."""


OK, FAILED = JobState.SUCCEEDED, JobState.FAILED
BECOMES_A_DAEMON = "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0: ignore(1, 2, 15); note()\n os._exit(0)\n"
HAS_NOTED = "while not (home / 'pid').exists(): time.sleep(0.01)\n"
AGENTS = (
    Odd("double-forks and ends", BECOMES_A_DAEMON + HAS_NOTED + "good()", OK),
    Odd("double-forks, and is killed at once", BECOMES_A_DAEMON + HAS_NOTED + "os.kill(os.getpid(), 9)", FAILED, "the agent's program ended with signal 9"),
    Odd("leaves a daemon that holds its streams", "subprocess.Popen(['sleep', '600'], start_new_session=True); good()", OK),
    Odd("leaves a daemon without the mark", "subprocess.Popen(['sleep', '600'], start_new_session=True, env={}); good()", OK),
    Odd("ignores INT and TERM", "ignore(2, 15); note()", FAILED, "the agent was stopped after its timeout", 0.5),
    Odd("stops itself", "os.kill(os.getpid(), signal.SIGSTOP)", FAILED, "the agent was stopped after its timeout", 0.5),
    Odd("ends well, but too late", "signal.signal(2, lambda *_: (good(), sys.exit(0)))\nwhile True: time.sleep(9)", FAILED, "the agent was stopped after its timeout", 0.5),
    Odd("closes its streams", "os.closerange(0, 3); time.sleep(0.1); os._exit(0)", FAILED, NO_RESULT, runs=2),
    Odd("prints nothing", "", FAILED, NO_RESULT, runs=2),
    Odd("ends well without a result", "print('all done')", FAILED, NO_RESULT, runs=2),
    Odd("fails with a good result", "good(); print('boom', file=sys.stderr); sys.exit(1)", FAILED, "the agent's program ended with exit code 1: boom"),
    Odd("crashes after a good result", "good(); os.kill(os.getpid(), 11)", FAILED, "the agent's program ended with signal 11"),
    Odd("prints binary around a result", "os.write(1, bytes(range(256)) * 999); good(); os.write(1, b'\\xff\\0')", OK),
    Odd("prints 100 MiB without a newline", "[os.write(1, b'x' * 2**20) for _ in range(100)]; good()", OK),
    Odd("prints more than it may write", "resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))\nsys.stdout.write('x' * 2**20); good()", FAILED, "the agent's program ended with exit code 1"),
    Odd("prints its result after its parent ended", "if os.fork() == 0: time.sleep(0.5); good()", FAILED, NO_RESULT, runs=2),
    Odd("does not read its prompt of 1 MiB", "good()", OK),
    Odd("closes its prompt in the middle", "os.read(0, 10); os.close(0); good()", OK),
    Odd("is not there", "os.remove(sys.argv[0]); os.execv('/no/such', ['x'])", FAILED, "the agent's program ended with exit code 1: FileNotFoundError"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "h").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    return tmp_path / "h"


@pytest.fixture
def impatient(stage: Stage) -> Stage:
    """Return the stage with a short grace period."""
    settings = unboxed({"worker": {"stop_grace": f"{GRACE * 1000:g}ms"}})
    context = replace(stage.context, settings=settings)
    return replace(stage, context=context, jobs=Jobs(context, {"shell": Shell(())}, Slots(context.settings)))


def kept(stage: Stage, outcome: JobOutcome) -> attempt_rows.AttemptRow:
    run = attempt_rows.get(stage.context.store, outcome.job_id, outcome.attempt)
    assert run is not None
    return run


def nothing_is_left(stage: Stage, run: attempt_rows.AttemptRow, home: Path) -> None:
    for path in Path(run.run_dir).parent.iterdir():
        assert with_mark(mark_of(path)) == set()
    if (home / "pid").exists():
        assert identity(int((home / "pid").read_text())) is None


@pytest.mark.parametrize("odd", AGENTS, ids=lambda odd: odd.does)
async def test_each_ends_as_the_table_says_once_and_leaves_nothing(impatient: Stage, own_home: Path, odd: Odd) -> None:
    prompt = Text(inline="look at it " * 100_000) if "prompt" in odd.does else Text(inline="look")
    job = impatient.job(START + odd.script, timeout_seconds=odd.timeout, prompt=prompt)
    outcome = await impatient.play(job)
    assert outcome.state is odd.state
    assert outcome.reason.startswith(odd.reason)
    run = kept(impatient, outcome)
    nothing_is_left(impatient, run, own_home)
    assert await impatient.play(job) == outcome
    assert kept(impatient, outcome) == run
    assert (own_home / "count").read_text() == "x" * odd.runs


@pytest.mark.parametrize(
    ("manner", "reached"),
    [
        ("signal.signal(2, lambda *_: (good(), os._exit(0)))", True),
        ("signal.signal(2, lambda *_: (print('half'), sys.stdout.flush(), os._exit(130)))", True),
        ("ignore(2); signal.signal(15, lambda *_: (print('half'), sys.stdout.flush(), os._exit(0)))", True),
        ("signal.signal(2, lambda *_: (print('half'), sys.stdout.flush(), os._exit(0)))\nSTOPPED = 1", True),
        ("ignore(1, 2, 15)", False),
    ],
    ids=["says it succeeded", "says it was interrupted", "ends on TERM", "is stopped", "does not listen"],
)
async def test_an_order_to_stop_reaches_it_within_the_grace_and_its_output_is_kept(
    impatient: Stage, own_home: Path, manner: str, reached: bool
) -> None:
    script = START + manner + "\nprint('begun', flush=True); (home / 'pid').write_text(str(os.getpid()))\n"
    script += "if 'STOPPED' in dir(): os.kill(os.getpid(), signal.SIGSTOP)\nwhile True: time.sleep(9)\n"
    environment = ActivityEnvironment()
    job = impatient.job(script, Action.IMPLEMENT)
    playing = asyncio.create_task(environment.run(impatient.jobs.run_job, job))
    await until(lambda: (own_home / "pid").exists() and (own_home / "pid").read_text() != "")
    if "STOPPED" in manner:
        stat = Path(f"/proc/{(own_home / 'pid').read_text()}/stat")
        await until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    environment.cancel()
    outcome = await playing
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")
    run = kept(impatient, outcome)
    output = (run.diagnostics or {})["output"]
    assert output.startswith("begun\n")
    assert (output != "begun\n") is reached
    nothing_is_left(impatient, run, own_home)


async def test_what_it_printed_before_its_deadline_is_evidence(impatient: Stage) -> None:
    job = impatient.job(START + "print('half way', flush=True); ignore(2, 15); note()", timeout_seconds=3)
    began = time.monotonic()
    outcome = await impatient.play(job)
    assert time.monotonic() - began < 3 + GRACE + 20  # it did not sleep its 600 seconds
    diagnostics = kept(impatient, outcome).diagnostics or {}
    assert (diagnostics["output"], diagnostics["end"]) == ("half way\n", "timed_out")


async def test_stopped_before_it_began_it_is_cancelled(impatient: Stage, own_home: Path) -> None:
    """There is no output to read."""
    job = impatient.job(START + "good()")
    folder = run_folders.new(impatient.context.home.runs, job.job_id, job.attempt)
    assert claim_rows.begin(impatient.context.store, Offered(job.job_id, job.attempt), host="here", run_dir=str(folder))
    await stop(folder, 0.1)
    outcome = await impatient.play(job)
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")
    assert not (own_home / "count").exists()


@pytest.fixture
def small_disk(stage: Stage) -> Iterator[Path]:
    """Mount a disk of 256 KiB for this home's runs."""
    disk = stage.context.home.runs
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: filling the disk of a run directory needs the right to mount a small one")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


async def test_it_fills_the_disk_of_its_run_directory(impatient: Stage, small_disk: Path, own_home: Path) -> None:
    job = impatient.job(START + "[os.write(1, b'x' * 65536) for _ in range(99)]; good()")
    outcome = await impatient.play(job)
    assert outcome.state is FAILED
    assert outcome.reason.startswith("the agent's program ended with exit code 1")
    assert outcome == await impatient.play(job)
    assert (own_home / "count").read_text() == "x"
