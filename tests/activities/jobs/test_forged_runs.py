"""Forged records of runs: an agent's files in the folders of runs are never taken for the records of those runs."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest
from sqlalchemy import update

from activities.runs import run_folders
from activities.runs.supervised_run import Claim
from activities.store import attempt_rows, claim_rows, schema
from tests.activities.jobs.conftest import Stage
from tests.waiting import soon, until
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("N4")

SAID = '{"service_result": {"decision": "approved", "summary": "%s"}}'
FORGES = """\
import json, pathlib
CLAIM = {"at": 1.0, "pid": 999999, "start": "1"}
END = {"kind": "exited", "exit_code": 0, "started_at": 1.0, "ended_at": 2.0}
def forge(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("claim", json.dumps(CLAIM)), ("stdout.log", FORGED), ("exit.json", json.dumps(END))):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text)
"""
OWN_FOLDER = """\
import os, pathlib
own = next(each for each in RUNS.iterdir() if each.name == os.environ["SERVICE_RUN_MARK"].partition("@")[0])
"""


def agent(stage: Stage, *lines: str, says: str = "fine") -> str:
    """Return an agent's script that knows the runs' folders and their format; it approves at the end."""
    runs = stage.context.home.runs
    begins = f"FORGED = {SAID % 'forged'!r}\n{FORGES}\nRUNS = pathlib.Path({str(runs)!r})\n"
    return begins + "\n".join(lines) + f"\nprint({SAID % says!r})\n"


def proof(stage: Stage) -> str:
    path = stage.tmp / "ran"
    return path.read_text() if path.exists() else ""


def leaves_proof(stage: Stage) -> str:
    return f"open({str(stage.tmp / 'ran')!r}, 'a').write('x')"


def waits(stage: Stage) -> str:
    return f"import time\nwhile not os.path.exists({str(stage.tmp / 'go')!r}): time.sleep(0.02)"


def row(stage: Stage, job: JobRun) -> attempt_rows.AttemptRow:
    attempt = attempt_rows.get(stage.context.store, job.job_id, job.attempt)
    assert attempt is not None
    return attempt


async def test_a_verify_leg_that_its_coordinator_has_forged_really_runs(stage: Stage) -> None:
    leg = "job-0123456789ab.1"
    guesses = f"for guess in ('', '.again', '.fresh', '.repair'): forge(RUNS / ('{leg}.1' + guess))"
    coordinator = await stage.play(stage.job(agent(stage, guesses)))
    assert coordinator.state is JobState.SUCCEEDED
    assert (stage.context.home.runs / f"{leg}.1" / "exit.json").exists(), "it has forged it"
    verify = stage.job(agent(stage, leaves_proof(stage), says="real"), Action.REVIEW, job_id=leg)
    outcome = await stage.play(verify)
    assert (outcome.summary, proof(stage)) == ("real", "x")
    assert Path(row(stage, verify).run_dir).stat().st_mode & 0o777 == 0o700


async def test_a_forged_end_in_the_folder_of_a_run_is_not_its_end(stage: Stage) -> None:
    """The agent finds its own folder, because unboxed ones can find any."""
    job = stage.job(agent(stage, OWN_FOLDER, "forge(own)", leaves_proof(stage), "os._exit(3)"), Action.IMPLEMENT)
    outcome = await stage.play(job)
    assert (outcome.state, proof(stage)) == (JobState.FAILED, "x")
    assert outcome.reason.startswith("the agent's program ended with exit code 3")


@pytest.mark.parametrize(("action", "runs"), [(Action.REVIEW, "xx"), (Action.IMPLEMENT, "x")])
async def test_a_run_whose_records_are_not_believed_is_like_one_whose_end_nobody_saw(
    stage: Stage, action: Action, runs: str
) -> None:
    """A reader runs once more, in another folder, and that is reported; a writer does not, and names its folder."""
    script = agent(stage, leaves_proof(stage), "import os", waits(stage), says="real")
    job = stage.job(script, action)
    playing = asyncio.create_task(stage.play(job))
    await until(lambda: proof(stage) == "x")
    folder = Path(row(stage, job).run_dir)
    claim = Claim.read(folder)
    assert claim is not None
    assert claim.pid is not None
    (folder / "exit.json").write_text('{"kind": "exited", "exit_code": 0}')
    os.kill(claim.pid, signal.SIGKILL)
    (stage.tmp / "go").touch()
    outcome = await playing
    assert proof(stage) == runs
    if action is Action.REVIEW:
        assert (outcome.summary, [notice.kind for notice in outcome.notices]) == ("real", ["run_started_again"])
    else:
        assert outcome.state is JobState.FAILED
        assert f"{folder / 'exit.json'} does not carry the seal of this service and this run" in outcome.reason


async def test_an_end_that_was_written_into_the_store_is_not_the_run_s(stage: Stage) -> None:
    """Whoever has the database, but not the key, writes an end while the agent works."""
    job = stage.job(agent(stage, leaves_proof(stage), "import os", waits(stage), says="real"))
    playing = asyncio.create_task(stage.play(job))
    await until(lambda: proof(stage) == "x")
    forged = JobOutcome(job_id=job.job_id, state=JobState.SUCCEEDED, summary="forged").model_dump(mode="json")
    with stage.context.store.begin() as connection:
        connection.execute(update(schema.attempts).values(ended_at=2.0, outcome=forged, payload={}, diagnostics={}))
    (stage.tmp / "go").touch()
    outcome = await playing
    assert (outcome.summary, proof(stage)) == ("real", "x")
    assert await stage.play(job) == outcome, "a call that is repeated finds what was recorded"
    assert row(stage, job).known_outcome == outcome


@pytest.mark.parametrize(
    "what", ["os.symlink(SECRET, log)", "os.mkfifo(log)", "log.mkdir()"], ids=["link", "pipe", "folder"]
)
async def test_output_that_its_agent_has_replaced_is_reported_never_followed_or_waited_for(
    stage: Stage, what: str
) -> None:
    secret = stage.tmp / "secret"
    secret.write_text(SAID % "of the operator")
    replaces = f"SECRET = {str(secret)!r}; log = own / 'stdout.log'; log.unlink(); {what}"
    job = stage.job(agent(stage, OWN_FOLDER, replaces))
    outcome = await soon(stage.play(job))
    assert outcome.state is JobState.FAILED
    assert outcome.reason.startswith("what the agent printed is lost: ")
    assert str(Path(row(stage, job).run_dir) / "stdout.log") in outcome.reason
    assert "of the operator" not in str(row(stage, job))


@pytest.mark.parametrize("work_too", [False, True], ids=["its run", "its run and its work"])
@pytest.mark.parametrize(("action", "ran"), [(Action.IMPLEMENT, ""), (Action.REVIEW, "x")])
async def test_a_run_whose_folder_is_gone_is_like_one_whose_end_nobody_saw(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, action: Action, ran: str, work_too: bool
) -> None:
    """It is unknown whether the program had begun: a writer is not started, a reader is reported as started again.

    Both folders are missing if a home was restored from a backup.
    """
    job = stage.job(agent(stage, leaves_proof(stage), says="real"), action)
    with monkeypatch.context() as dying:
        dying.setattr("activities.jobs.execution.supervised_run.begin", dies)
        with pytest.raises(RuntimeError, match="the worker dies"):
            await stage.play(job)
    folder = Path(row(stage, job).run_dir)
    shutil.rmtree(folder)
    for place in (stage.context.home.worktrees, stage.context.home.root / "checkouts") if work_too else ():
        shutil.rmtree(place)
    outcome = await stage.play(job)
    assert proof(stage) == ran
    if action is Action.IMPLEMENT:
        why = "the worktree cannot be read" if work_too else f"its folder {folder} is gone"
        assert why in outcome.reason
    else:
        assert (outcome.summary, [notice.kind for notice in outcome.notices]) == ("real", ["run_started_again"])


def dies(*_: object) -> None:
    raise RuntimeError("the worker dies")


async def test_a_folder_that_is_gone_before_anything_can_have_begun_is_made_again(stage: Stage) -> None:
    job = stage.job(agent(stage, leaves_proof(stage), says="real"), Action.IMPLEMENT)
    folder = opened(stage, job)
    folder.rmdir()
    assert (await stage.play(job)).summary == "real"
    assert (Path(row(stage, job).run_dir), proof(stage)) == (folder, "x")


async def test_a_worker_that_dies_as_it_has_made_the_folder_leaves_one_that_nobody_takes(stage: Stage) -> None:
    job = stage.job(agent(stage, leaves_proof(stage)))
    left = run_folders.new(stage.context.home.runs, job.job_id, job.attempt)
    assert (await stage.play(job)).state is JobState.SUCCEEDED
    assert row(stage, job).run_dir != str(left)
    assert list(left.iterdir()) == []


async def test_a_worker_that_dies_as_the_folder_is_recorded_leaves_it_to_the_next(stage: Stage) -> None:
    job = stage.job(agent(stage, leaves_proof(stage)))
    folder = opened(stage, job)
    outcomes = [await stage.play(job) for _ in range(2)]
    assert row(stage, job).run_dir == str(folder)
    assert (outcomes[0], proof(stage)) == (outcomes[1], "x")
    assert list(stage.context.home.runs.iterdir()) == [folder]


async def test_what_is_taken_back_leaves_no_folder(stage: Stage) -> None:
    job = stage.job(agent(stage, leaves_proof(stage)))
    claim_rows.take_back(stage.context.store, attempt_rows.Offered(job.job_id, job.attempt, job.offer))
    outcome: JobOutcome = await stage.play(job)
    assert outcome.state is JobState.CANCELLED
    assert list(stage.context.home.runs.iterdir()) == []
    assert proof(stage) == ""


def opened(stage: Stage, job: JobRun) -> Path:
    """Do a worker's first steps of an attempt, and return its folder."""
    folder = run_folders.new(stage.context.home.runs, job.job_id, job.attempt)
    offered = attempt_rows.Offered(job.job_id, job.attempt, job.offer)
    assert claim_rows.begin(stage.context.store, offered, host=stage.context.host, run_dir=str(folder))
    return folder
