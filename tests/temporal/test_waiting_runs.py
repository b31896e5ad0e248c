"""Runs that wait for their program, on the real server: the wait holds no slot, is visible, and can be ended."""

import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError
from temporalio.worker import Worker

from activities.agents.registry import adapters_of
from activities.host.context import Context
from activities.host.slots import Slots
from activities.jobs import deferral as deferral
from activities.jobs.record_tree import TreeRecorder
from activities.jobs.run_job import Jobs
from activities.settings.home import Home
from activities.store import attempt_rows
from activities.store.database import open_store
from activities.store.registry import repo_rows
from tests.activities.jobs.programs import PRELUDE, calls
from tests.temporal.server import runs
from tests.unboxed import unboxed
from tests.waiting import soon, until
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.long_texts import Text
from workflows.model.states import JobState
from workflows.model.workers import Assignment
from workflows.model.workers import Worker as Agent
from workflows.temporal import search
from workflows.temporal.calls import agents_queue
from workflows.temporal.delegation import DelegatedAttempt
from workflows.temporal.messages import DelegationInput
from workflows.temporal.runner import WORKFLOWS

LIMITED = "claude('You have hit your usage limit', True, 429)"


@pytest.fixture
def context(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: str) -> Context:
    """Create a host with one slot, whose runtime_b hits a rate limit at its first call."""
    (tmp_path / "h").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    monkeypatch.setattr(deferral, "MARGIN_SECONDS", 0.0)
    repo = tmp_path / "shop"
    commit = "git init -q -b main && git -c user.name=t -c user.email=t@x.invalid commit -q --allow-empty -m first"
    repo.mkdir()
    subprocess.run(["sh", "-c", commit], cwd=repo, check=True)
    program = tmp_path / "program.py"
    program.write_text(f"{PRELUDE}\nif number == 1 or 'always' in prompt:\n    {LIMITED}\nclaude(RESULT)")
    section = {"command": [sys.executable, str(program)], "rate_limit_backoff": "4s"}
    settings = unboxed({"runtimes": {"runtime_b": section}, "worker": {"host": queue}})
    context = Context(home, settings, open_store(home))
    repo_rows.put(context.store, "acme/shop", str(repo), queue)
    return context


@asynccontextmanager
async def serving(client: Client, queue: str, context: Context) -> AsyncIterator[None]:
    jobs = Jobs(context, adapters_of(context.settings, context.environ), Slots(context.settings))
    quick = timedelta(seconds=0.2)
    trees = Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        workflow_runner=runs(client),
        activities=[TreeRecorder(context).call_off],
        activity_executor=ThreadPoolExecutor(2),
    )
    agents = Worker(
        client,
        task_queue=agents_queue(queue),
        activities=[jobs.run_job],
        max_concurrent_activities=1,
        max_heartbeat_throttle_interval=quick,
    )
    async with trees, agents:
        yield


def a_run(prompt: str = "look") -> JobRun:
    job_id = f"job-{uuid4().hex[:12]}"
    return JobRun(
        job_id=job_id,
        root_job_id=job_id,
        task_id="task-1",
        repo="acme/shop",
        assignment=Assignment(
            worker=Agent(name="scout", runtime="runtime_b"),
            action=Action.ASK,
            prompt=Text(inline=prompt),
        ),
    )


Leg = WorkflowHandle[DelegatedAttempt, JobOutcome]


async def start(client: Client, queue: str, run: JobRun) -> Leg:
    return await client.start_workflow(
        DelegatedAttempt.run,
        DelegationInput(run=run, host=queue),
        id=run.job_id,
        task_queue=queue,
        search_attributes=search.attributes(run, JobState.RUNNING.value),
        execution_timeout=timedelta(days=1),
    )


async def until_put_off(context: Context, run: JobRun) -> None:
    await until(lambda: attempt_rows.deferrals_of_run(context.store, run.job_id, 1))


async def ends_cancelled(leg: Leg) -> None:
    with pytest.raises(WorkflowFailureError) as over:
        await soon(leg.result())
    assert isinstance(over.value.cause, CancelledError)


@pytest.mark.ruling("B3", "C8.limits")
async def test_while_one_waits_its_place_is_another_ones(
    client: Client, queue: str, context: Context, tmp_path: Path
) -> None:
    first, second = a_run(), a_run()
    async with serving(client, queue, context):
        waiting = await start(client, queue, first)
        await until_put_off(context, first)
        other = await start(client, queue, second)
        assert (await other.result()).state is JobState.SUCCEEDED
        described = await waiting.describe()
        (pending,) = described.raw_description.pending_activities
        assert "waits for runtime_b until" in pending.last_failure.message
        assert (await waiting.result()).state is JobState.SUCCEEDED
    assert calls(tmp_path / "h") == 3
    history = await waiting.fetch_history()
    kinds = [event.event_type for event in history.events]
    assert len(kinds) < 14, "waiting leaves nothing in the history"


@pytest.mark.ruling("G2")
@pytest.mark.parametrize("worker_is_gone", [False, True])
async def test_a_run_that_waits_ends_at_once_when_it_is_cancelled(
    client: Client, queue: str, context: Context, worker_is_gone: bool
) -> None:
    run = a_run("always")
    long = context.settings.model_copy(
        update={"runtimes": {"runtime_b": context.settings.runtimes["runtime_b"].model_copy(update=HOUR)}}
    )
    patient = Context(context.home, long, context.store)
    async with serving(client, queue, patient):
        leg = await start(client, queue, run)
        await until_put_off(patient, run)
        if not worker_is_gone:
            await leg.cancel()
            await ends_cancelled(leg)
    if worker_is_gone:  # the wait is the server's: it lasts, and ends, without a worker
        await leg.cancel()
        async with serving(client, queue, patient):
            await ends_cancelled(leg)
    assert calls(Path(patient.environ["HOME"])) == 1


HOUR = {"rate_limit_backoff": 3600.0}
