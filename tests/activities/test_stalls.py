"""What stands still is found and shown, and is forgotten once it goes on (ruling B3)."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities import stalls
from activities.host.context import Context
from activities.runs.supervised_run import RunRequest, run
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.stalls import StallWatch
from activities.store import attempt_rows, claim_rows, job_rows, stall_rows
from activities.store.attempt_rows import Offered
from activities.store.database import open_store
from tests.bridge import seeds
from tests.waiting import until
from workflows.model.jobs import JobOutcome
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.policy.stalls import STEP_ATTEMPTS, Stall, StallKind

pytestmark = pytest.mark.ruling("B3")
QUEUE = "stalls"


@workflow.defn
class Broken:
    """A workflow whose step fails for good."""

    @workflow.run
    async def run(self) -> None:
        raise ValueError("a fault of the code")


@pytest.fixture
def context(home: Home) -> Context:
    settings = Settings.model_validate({"temporal": {"task_queue": QUEUE}})
    return Context(home, settings, open_store(home))


def recorded(context: Context) -> list[Stall]:
    with context.store.connect() as connection:
        return stall_rows.every(connection)


@pytest.fixture
def watch(client: Client, context: Context, monkeypatch: pytest.MonkeyPatch) -> StallWatch:
    monkeypatch.setattr(stalls, "STALL_SECONDS", 0.0)
    return StallWatch(client, context)


async def test_a_step_beyond_its_usual_attempts_stands_still_until_it_succeeds(
    client: Client, context: Context, watch: StallWatch
) -> None:
    runner = UnsandboxedWorkflowRunner()

    async def found() -> list[str]:
        await watch.check(leads=True)
        return [stall.what for stall in recorded(context)]

    async with Worker(client, task_queue=QUEUE, workflows=[Broken], workflow_runner=runner):
        handle = await client.start_workflow("Broken", id="broken", task_queue=QUEUE, task_timeout=timedelta(seconds=2))
        await until(found)
    (stall,) = recorded(context)
    assert (stall.kind, stall.what, stall.host) == (StallKind.STEP, "broken", "")
    assert stall.attempt > STEP_ATTEMPTS
    await watch.check(leads=False)
    assert recorded(context) == [stall], "only the leader looks at steps"
    await handle.terminate()

    async def is_over() -> bool:
        return await found() == []

    await until(is_over)


async def test_an_end_that_is_not_recorded_stands_still_until_it_is(context: Context, watch: StallWatch) -> None:
    job = seeds.job(state=JobState.RUNNING)
    job_rows.write(context.store, Records(task=seeds.task(), jobs=(job,)))
    run_dir = context.home.runs / f"{job.job_id}.1"
    offered = Offered(job.job_id, job.attempt)
    row = claim_rows.begin(context.store, offered, host=context.host, run_dir=str(run_dir))
    assert row is not None
    await watch.check(leads=False)
    assert recorded(context) == [], "its program has not begun"
    await run(RunRequest(run_dir, ("true",), Path(context.home.root), {"PATH": os.environ["PATH"]}))
    await watch.check(leads=False)
    (stall,) = recorded(context)
    assert (stall.kind, stall.what, stall.host) == (StallKind.END, job.job_id, context.host)
    outcome = JobOutcome(job_id=job.job_id, attempt=job.attempt, state=JobState.SUCCEEDED)
    attempt_rows.close(context.store, row, outcome, {}, {})
    await watch.check(leads=False)
    assert [each.since for each in recorded(context)] == [stall.since], "its tree has not heard of it"
    ended = job.model_copy(update={"state": JobState.SUCCEEDED, "revision": job.revision + 1})
    job_rows.write(context.store, Records(task=seeds.task(), jobs=(ended,)))
    await watch.check(leads=False)
    assert recorded(context) == []


async def test_what_stands_still_for_less_than_a_minute_is_not_shown(
    context: Context, watch: StallWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = seeds.job(state=JobState.RUNNING)
    job_rows.write(context.store, Records(task=seeds.task(), jobs=(job,)))
    run_dir = context.home.runs / f"{job.job_id}.1"
    claim_rows.begin(context.store, Offered(job.job_id, job.attempt), host=context.host, run_dir=str(run_dir))
    await run(RunRequest(run_dir, ("true",), Path(context.home.root), {"PATH": os.environ["PATH"]}))
    monkeypatch.setattr(stalls, "STALL_SECONDS", 60.0)
    await watch.check(leads=False)
    assert recorded(context) == []
