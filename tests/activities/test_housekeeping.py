"""What a worker does at its start, and now and then, with what others left."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update

from activities import housekeeping
from activities.jobs.context import Context
from activities.runs import sweep
from activities.runs.processes import marked
from activities.runs.run import RunRequest, mark_of, run, stop
from activities.runs.sweep import Orphan
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import claims, hosts, runs, schema
from activities.store.claims import Offered
from activities.store.database import open_store
from tests.activities.runs.conftest import until
from workflows.tree.jobs import JobOutcome, JobState

pytestmark = pytest.mark.ruling("engine:runs")


@pytest.fixture
def context(home: Home) -> Context:
    settings = Settings.model_validate({"worker": {"stop_grace": "200ms", "keep_runs": "1h"}})
    return Context(home, settings, open_store(home))


def row(context: Context, job: str, *, recorded: float | None = None) -> runs.Run:
    """A run's row; with the outcome it got so many seconds ago."""
    run_dir = str(context.home.runs / f"{job}.1")
    opened = claims.begin(context.store, Offered(job, 1), host=context.host, run_dir=run_dir)
    assert opened is not None
    if recorded is not None:
        outcome = JobOutcome(job_id=job, attempt=1, state=JobState.SUCCEEDED)
        runs.close(context.store, opened, outcome, {}, {})
        with context.store.begin() as connection:
            ago = update(schema.runs).where(schema.runs.c.job_id == job)
            connection.execute(ago.values(ended_at=time.time() - recorded))
    return opened


@pytest.fixture
async def going_on(context: Context, tmp_path: Path) -> AsyncIterator[dict[str, Path]]:
    """Two runs: one without an outcome, one that was recorded while its program went on."""
    row(context, "job-open")
    row(context, "job-done", recorded=0)
    found = {name: context.home.runs / f"{name}.1" for name in ("job-open", "job-done")}
    script = "echo > $0; sleep 600"
    tasks = [
        asyncio.create_task(
            run(RunRequest(path, ("sh", "-c", script, str(tmp_path / name)), tmp_path, {"PATH": os.environ["PATH"]}))
        )
        for name, path in found.items()
    ]
    await until(lambda: all((tmp_path / name).exists() for name in found))
    yield found
    await asyncio.gather(*(stop(path, 0.1) for path in found.values()), *tasks)


async def test_the_start_ends_what_nobody_waits_for_and_says_so_first(
    context: Context, going_on: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    kill = sweep.kill_orphan

    async def watched(orphan: Orphan, grace: float) -> int:
        told.append(orphan.run_dir.name in context.home.orphans.read_text())
        return await kill(orphan, grace)

    monkeypatch.setattr(sweep, "kill_orphan", watched)
    assert await housekeeping.end_orphans(context) == 1
    assert told == [True]
    assert marked(mark_of(going_on["job-done"])) == set()
    assert marked(mark_of(going_on["job-open"]))
    (line,) = context.home.orphans.read_text().splitlines()
    assert json.loads(line)["run_dir"] == str(going_on["job-done"])
    assert await housekeeping.end_orphans(context) == 0
    assert len(context.home.orphans.read_text().splitlines()) == 1


async def test_a_home_without_runs_is_swept_too(context: Context) -> None:
    assert await housekeeping.end_orphans(context) == 0
    assert housekeeping.tidy(context) == 0


async def test_the_output_of_old_recorded_runs_is_removed_and_their_record_stays(context: Context) -> None:
    for job, recorded in (("job-old", 7200), ("job-young", 60), ("job-open", None)):
        run_dir = Path(row(context, job, recorded=recorded).run_dir)
        run_dir.mkdir(parents=True)
        (run_dir / "stdout.log").write_text("said")
        os.utime(run_dir, (0, 0))
    assert housekeeping.tidy(context) == 1
    assert housekeeping.tidy(context) == 0
    assert {path.name for path in context.home.runs.iterdir()} == {"job-young.1", "job-open.1"}
    old = runs.get(context.store, "job-old", 1)
    assert old is not None
    assert old.recorded is not None


async def test_trouble_with_the_disk_does_not_end_the_worker(
    context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Context) -> int:
        raise OSError("the disk is odd")

    monkeypatch.setattr(housekeeping, "tidy", broken)
    monkeypatch.setattr(housekeeping, "TIDY_SECONDS", 0.01)
    task = asyncio.create_task(housekeeping.keep_tidy(context))
    await until(lambda: caplog.text.count("the disk is odd") > 1)
    assert not task.done()
    task.cancel()


@pytest.mark.ruling("engine:hosts")
async def test_a_worker_says_again_and_again_that_it_is_there_and_that_it_stops(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "SEEN_SECONDS", 0.02)
    async with housekeeping.seen(context):
        [first] = hosts.every(context.store)
        assert (first.name, first.slots, first.stopped_at) == (context.host, 8, None)
        async with asyncio.timeout(30):
            while hosts.every(context.store)[0].seen_at == first.seen_at:
                await asyncio.sleep(0.02)
    assert hosts.every(context.store)[0].stopped_at


@pytest.mark.ruling("engine:hosts")
async def test_a_store_that_cannot_be_told_does_not_end_the_worker(context: Context) -> None:
    with context.store.begin() as connection:
        schema.hosts.drop(connection)
    async with housekeeping.seen(context):
        pass
