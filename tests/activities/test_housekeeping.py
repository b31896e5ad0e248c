"""A worker's treatment of leftovers, at its start and now and then."""

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from activities import ended_outside, housekeeping, without_temporal
from activities.git.work_folder import delete_later
from activities.host import identity, old_runs
from activities.host.context import Context
from activities.runs import orphans as sweep
from activities.runs.orphans import Orphan
from activities.runs.os_processes import with_mark
from activities.runs.supervised_run import RunRequest, mark_of, run, stop
from activities.settings.home import Home
from activities.settings.model import Fleet, Settings
from activities.store import attempt_rows, claim_rows, job_rows, run_rows, schema
from activities.store.attempt_rows import Offered
from activities.store.database import open_store
from activities.store.registry import host_rows
from activities.store.run_rows import Over
from tests.bridge import seeds
from tests.waiting import PATIENCE, soon, until
from workflows.model.jobs import JobOutcome
from workflows.model.rows import Records
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("engine:runs")


@pytest.fixture
def context(home: Home) -> Context:
    settings = Settings.model_validate({"worker": {"stop_grace": "200ms", "keep_runs": "1h"}})
    return Context(home, settings, open_store(home))


def row(context: Context, job: str, *, recorded: float | None = None) -> attempt_rows.AttemptRow:
    """Insert a run's row, with an outcome recorded so many seconds ago."""
    run_dir = str(context.home.runs / f"{job}.1")
    opened = claim_rows.begin(context.store, Offered(job, 1), host=context.host, run_dir=run_dir)
    assert opened is not None
    if recorded is not None:
        outcome = JobOutcome(job_id=job, attempt=1, state=JobState.SUCCEEDED)
        attempt_rows.close(context.store, opened, outcome, {}, {})
        with context.store.begin() as connection:
            ago = update(schema.attempts).where(schema.attempts.c.job_id == job)
            connection.execute(ago.values(ended_at=time.time() - recorded))
    return opened


@pytest.fixture
async def going_on(context: Context, tmp_path: Path) -> AsyncIterator[dict[str, Path]]:
    """Start two runs: one without an outcome, one recorded while its program goes on."""
    row(context, "job-open")
    row(context, "job-done", recorded=0)
    folders = {name: context.home.runs / f"{name}.1" for name in ("job-open", "job-done")}
    script = "echo > $0; sleep 600"
    tasks = [
        asyncio.create_task(
            run(RunRequest(path, ("sh", "-c", script, str(tmp_path / name)), tmp_path, {"PATH": os.environ["PATH"]}))
        )
        for name, path in folders.items()
    ]
    await until(lambda: all((tmp_path / name).exists() for name in folders))
    yield folders
    await asyncio.gather(*(stop(path, 0.1) for path in folders.values()), *tasks)


async def test_the_start_ends_what_nobody_waits_for_and_says_so_first(
    context: Context, going_on: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[bool] = []
    kill = sweep.kill_orphan

    async def watched(orphan: Orphan, grace: float) -> int:
        recorded.append(orphan.run_dir.name in context.home.orphans.read_text())
        return await kill(orphan, grace)

    monkeypatch.setattr(sweep, "kill_orphan", watched)
    assert await housekeeping.end_orphans(context) == 1
    assert recorded == [True]
    assert with_mark(mark_of(going_on["job-done"])) == set()
    assert with_mark(mark_of(going_on["job-open"]))
    (line,) = context.home.orphans.read_text().splitlines()
    assert json.loads(line)["run_dir"] == str(going_on["job-done"])
    assert await housekeeping.end_orphans(context) == 0
    assert len(context.home.orphans.read_text().splitlines()) == 1


async def test_a_home_without_runs_is_swept_too(context: Context) -> None:
    assert await housekeeping.end_orphans(context) == 0
    assert old_runs.tidy(context) == 0


async def test_the_output_of_old_recorded_runs_is_removed_and_their_record_stays(context: Context) -> None:
    for job, recorded in (("job-old", 7200), ("job-young", 60), ("job-open", None)):
        run_dir = Path(row(context, job, recorded=recorded).run_dir)
        run_dir.mkdir(parents=True)
        (run_dir / "stdout.log").write_text("said")
        os.utime(run_dir, (0, 0))
    assert old_runs.tidy(context) == 1
    assert old_runs.tidy(context) == 0
    assert {path.name for path in context.home.runs.iterdir()} == {"job-young.1", "job-open.1"}
    old = attempt_rows.get(context.store, "job-old", 1)
    assert old is not None
    assert old.known_outcome is not None


async def test_trouble_with_the_disk_does_not_end_the_worker(
    context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Context) -> int:
        raise OSError("the disk is odd")

    monkeypatch.setattr(old_runs, "tidy", broken)
    monkeypatch.setattr(old_runs, "TIDY_SECONDS", 0.01)
    task = asyncio.create_task(old_runs.keep_tidy(context))
    await until(lambda: caplog.text.count("the disk is odd") > 1)
    assert not task.done()
    task.cancel()


@pytest.mark.ruling("engine:hosts")
async def test_a_worker_says_again_and_again_that_it_is_there_and_that_it_stops(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.02)
    async with housekeeping.record_presence(context, "service"):
        [first] = host_rows.every(context.store)
        assert (first.name, first.slots, first.stopped_at) == (context.host, 8, None)
        await until(lambda: host_rows.every(context.store)[0].seen_at != first.seen_at)
    assert host_rows.every(context.store)[0].stopped_at


@pytest.mark.ruling("engine:hosts")
async def test_a_store_that_cannot_be_told_does_not_end_the_worker(
    context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.02)
    async with housekeeping.record_presence(context, "service"):
        with context.store.begin() as connection:
            schema.hosts.drop(connection)
        await until(lambda: caplog.text.count("cannot record the heartbeat") > 1)


@pytest.mark.ruling("Q5.lost")
@pytest.mark.parametrize("silent", [True, False])
async def test_a_worker_lets_go_of_its_trees_once_it_was_without_the_store_for_as_long_as_jobs_wait(
    context: Context, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.02)
    ended, back = asyncio.Event(), threading.Event()
    monkeypatch.setattr(housekeeping, "_let_go", lambda why: ended.set())
    shared = Settings.model_validate({"store": {"url": "postgresql://db/x"}})
    quick = shared.model_copy(update={"fleet": Fleet.model_construct(move_after=1.0)})
    context = replace(context, settings=quick)

    def away(*_: object) -> bool:
        assert back.wait(PATIENCE) if silent else True
        raise OperationalError("", None, Exception("no route"))

    async with housekeeping.record_presence(replace(context, settings=Settings()), "service"):
        monkeypatch.setattr(identity, "see", away)
        began = time.monotonic()
        saying = asyncio.create_task(housekeeping._keep_recording(context, 1.0))
        await soon(ended.wait())
        assert time.monotonic() - began >= 1.0
        saying.cancel()
        back.set()


async def test_a_worker_that_cannot_evict_a_workflow_ends_unless_the_next_try_does_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(housekeeping, "STUCK_SECONDS", 0.01)
    ended: list[str] = []
    monkeypatch.setattr(housekeeping, "_let_go", ended.append)
    counts = [0, 1, 0, 0, 2, 2, 0]
    monkeypatch.setattr(housekeeping, "unevictable", lambda worker: counts.pop(0) if counts else 0)
    keeping = asyncio.create_task(housekeeping.keep_stepping(cast("Worker", None)))
    await until(lambda: not counts)
    keeping.cancel()
    assert ended == ["2 workflows can't be removed from memory, so slots stay taken"]


@pytest.mark.ruling("Q4")
async def test_a_worker_whose_background_task_fails_says_so_and_ends(
    context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.01)
    sent: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    async with housekeeping.record_presence(context, "service"):
        monkeypatch.setattr(identity, "see", lambda *_: 1 / 0)
        await until(lambda: sent)
    assert sent == [signal.SIGTERM]
    assert "a background task has failed: this process restarts" in caplog.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.ruling("Q4")
async def test_a_host_that_temporal_does_not_answer_starts_nothing_until_it_does(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(without_temporal, "CHECK_SECONDS", 0.01)
    fault: list[Exception] = [RuntimeError("no server"), RPCError("late", RPCStatusCode.DEADLINE_EXCEEDED, b"")]

    async def check_health(**_: object) -> bool:
        if fault:
            raise fault[0]
        return True

    client = cast("Client", SimpleNamespace(service_client=SimpleNamespace(check_health=check_health)))
    keeping = asyncio.create_task(without_temporal.keep_in_touch(client, context))
    for _ in range(2):
        await until(lambda: context.room.held == "Temporal does not answer it")
        fault.pop(0)
    await until(lambda: context.room.held == "")
    keeping.cancel()


@pytest.mark.ruling("Q1")
async def test_a_worker_whose_name_another_machine_has_taken_stops(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine slept for longer than a minute."""
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.02)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with housekeeping.record_presence(context, "service"):
        with context.store.begin() as connection:
            connection.execute(update(schema.hosts).values(machine="another", started_at=2.0))
        await soon(stopped.wait())
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    [host] = host_rows.every(context.store)
    assert (host.machine, host.stopped_at) == ("another", None)


def tell(context: Context, job: str, *, ended: float | None, attempt: int = 1) -> None:
    """Write the job's row: ended so many seconds ago, or still open."""
    over = {"state": JobState.CANCELLED, "ended_at": time.time() - ended} if ended is not None else {}
    job_rows.write(context.store, Records(jobs=(seeds.job(job, attempt=attempt, **over),)))


@pytest.mark.ruling("engine:outside", "G2")
async def test_the_agent_of_a_job_that_ended_without_it_is_ended_and_its_run_closed(
    context: Context, going_on: dict[str, Path]
) -> None:
    tell(context, "job-open", ended=ended_outside.STOPPING + 30)
    assert await ended_outside.end_abandoned(context) == 1
    assert with_mark(mark_of(going_on["job-open"])) == set()
    assert with_mark(mark_of(going_on["job-done"])), "it is recorded: the start of a worker looks after it"
    (line,) = context.home.orphans.read_text().splitlines()
    assert json.loads(line)["run_dir"] == str(going_on["job-open"])
    closed = attempt_rows.get(context.store, "job-open", 1)
    assert closed is not None
    assert closed.known_outcome is not None
    assert closed.known_outcome.state is JobState.CANCELLED
    assert "its job ended without it" in closed.known_outcome.reason
    assert await ended_outside.end_abandoned(context) == 0


@pytest.mark.ruling("engine:outside")
@pytest.mark.parametrize(("ended", "attempt"), [(None, 1), (0.0, 1), (1000.0, 0)])
async def test_an_agent_that_somebody_may_still_come_back_to_is_left(
    context: Context, going_on: dict[str, Path], ended: float | None, attempt: int
) -> None:
    """The job goes on, or has ended only just, or an earlier attempt has ended."""
    tell(context, "job-open", ended=ended, attempt=attempt)
    assert await ended_outside.end_abandoned(context) == 0
    assert with_mark(mark_of(going_on["job-open"]))
    left = attempt_rows.get(context.store, "job-open", 1)
    assert left is not None
    assert left.ended_at is None


@pytest.mark.ruling("engine:outside")
async def test_the_agents_of_another_host_are_its_own_affair(context: Context, going_on: dict[str, Path]) -> None:
    tell(context, "job-open", ended=ended_outside.STOPPING + 30)
    with context.store.begin() as connection:
        connection.execute(update(schema.attempts).values(host="elsewhere"))
    assert await ended_outside.end_abandoned(context) == 0
    assert with_mark(mark_of(going_on["job-open"]))


def test_what_a_killed_worker_was_about_to_delete_is_deleted_by_the_next(context: Context) -> None:
    (context.home.worktrees / "shop+job-a-1").mkdir(parents=True)
    left = delete_later.put_away(context.home.root / delete_later.FOLDER, context.home.worktrees / "shop+job-a-1")
    old_runs.tidy(context)
    assert not left.exists()


@pytest.mark.ruling("N2")
def test_sessions_of_trees_that_were_over_long_ago_are_removed(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_rows, "over", lambda *_: Over(frozenset({"job-old"}), None, 1))
    for tree in ("job-old", "job-open"):
        (context.home.programs / tree / "runtime_b" / "work" / "projects").mkdir(parents=True)
    old_runs.tidy(context)
    assert [path.name for path in context.home.programs.iterdir()] == ["job-open"]


@pytest.mark.ruling("Q8.drain")
async def test_a_drained_host_starts_nothing_over_a_restart_until_that_is_undone(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.01)
    async with housekeeping.record_presence(context, "service"):
        assert context.room.held == ""
        host_rows.drain(context.store, context.host)
        await until(lambda: context.room.held == "it is drained")
    again = Context(context.home, context.settings, context.store)
    async with housekeeping.record_presence(again, "service"):
        assert again.room.held == "it is drained"
        again.room.hold("the disk is full")
        host_rows.drain(context.store, context.host, undo=True)
        await until(lambda: again.room.held == "the disk is full")


@pytest.mark.ruling("engine:outside", "D4")
async def test_a_tree_that_a_retry_opens_while_its_end_is_looked_at_is_not_ended(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = "job-0123456789ab"

    def write(run_id: str, revision: int) -> None:
        task, job = seeds.task(root, revision=revision), seeds.job(root, state=JobState.RUNNING, revision=revision)
        job_rows.write_as(context.store, Records(revision=revision, task=task, jobs=(job,)), root, run_id)

    async def ended_before(*_: object) -> ended_outside.EndedWorkflow:
        write("run-2", 2)
        return ended_outside.EndedWorkflow("its workflow failed: part a failed", gone=True)

    write("run-1", 1)
    monkeypatch.setattr(ended_outside, "ending_of", ended_before)
    assert await ended_outside.settle(cast("Client", None), context.store, "service", root) is None
    job = job_rows.get(context.store, root)
    assert job is not None
    assert job.state is JobState.RUNNING
