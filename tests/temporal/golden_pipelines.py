"""The shapes of pipeline runs and firings whose histories are kept."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.worker import Worker

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder
from activities.pipelines.record_run import RunRecorder
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import run_rows
from activities.store.database import open_store
from activities.store.registry import pipeline_rows, repo_rows
from tests.pipeline.plans import agent, an_input, shell
from tests.temporal.mortal_worker import answer
from tests.waiting import until
from workflows.model import ids
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import Cancel
from workflows.pipeline.plan import Planned, RunState, StageOutcome, StageState
from workflows.pipeline.read import read
from workflows.pipeline.stages import StageRun
from workflows.pipeline.syntax import Format
from workflows.temporal.calls import agents_queue
from workflows.temporal.pipeline_calls import Firing
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.pipeline_schedule import PipelineFiring
from workflows.temporal.runner import WORKFLOWS, runner

Handle = WorkflowHandle[Any, Any]
REPO = "acme/shop"


@dataclass
class Stages:
    """Stages that end at once: `bad` ones fail, `held` ones last until they are stopped."""

    store: Engine
    held: asyncio.Event = field(default_factory=asyncio.Event)

    @activity.defn(name="run_stage")
    async def run_stage(self, run: StageRun) -> StageOutcome:
        if run.stage_id != "held":
            state = StageState.FAILED if run.stage_id == "bad" else StageState.SUCCEEDED
            outcome = StageOutcome(state=state, summary=f"{run.stage_id} ran")
            run_rows.stage_ends(self.store, run.row, outcome)
            return outcome
        self.held.set()
        try:
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            return StageOutcome(state=StageState.CANCELLED, reason="stopped on order")

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        return answer(run)

    @activity.defn(name="deliver")
    async def deliver(self, notification_id: str) -> None:
        """Ignore notifications."""


@dataclass
class Host:
    """Rows in a store of its own."""

    client: Client
    queue: str
    store: Engine
    stages: Stages

    @property
    def name(self) -> str:
        """The name of its pipeline, unique on the shared server."""
        return f"nightly-{self.queue}"

    async def run(self, *stages: Planned) -> Handle:
        start = an_input(*stages).model_copy(
            update={"run_id": f"prun-{self.queue}", "pipeline": self.name, "host": self.queue}
        )
        return await self.client.start_workflow(
            PipelineRun.run, start, id=ids.workflow_id(self.name), task_queue=self.queue
        )

    async def fire(self) -> Handle:
        text = f"name: {self.name}\nrepo: {REPO}\nstages:\n  - {{id: a, kind: shell, command: 'true'}}\n"
        pipeline_rows.put(self.store, read(text, Format.YAML), text, Format.YAML)
        repo_rows.put(self.store, REPO, "/nowhere", "another-host")
        firing = Firing(pipeline=self.name)
        handle = await self.client.start_workflow(
            PipelineFiring.run, firing, id=f"firing-{self.name}", task_queue=self.queue
        )
        await handle.result()
        return handle

    async def cancel(self, run: Handle) -> None:
        await self.stages.held.wait()
        await run.signal(PipelineRun.cancel, Cancel(run_id=f"prun-{self.queue}", actor="ann"))

    async def until(self, state: RunState) -> None:
        await until(lambda: run_rows.find(self.store, states=(state,)))


@asynccontextmanager
async def serving(client: Client, queue: str) -> AsyncIterator[Host]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).ensure()
        context = Context(home, Settings(), open_store(home))
        recorder, books, stages = TreeRecorder(context), RunRecorder(context), Stages(context.store)
        flows = Worker(
            client,
            task_queue=queue,
            workflows=WORKFLOWS,
            activities=[*recorder.activities, stages.deliver, books.record_run, books.plan_run],
            activity_executor=ThreadPoolExecutor(4),
            workflow_runner=runner(),
        )
        work = Worker(
            client,
            task_queue=agents_queue(queue),
            activities=[stages.run_stage, stages.run_job],
            max_heartbeat_throttle_interval=timedelta(seconds=0.2),
        )
        async with flows, work:
            yield Host(client, queue, context.store, stages)


async def over(run: Handle) -> None:
    """Wait until the run has ended in any state."""
    with suppress(WorkflowFailureError):
        await run.result()


async def pipeline_succeeded(client: Client, queue: str) -> Handle:
    async with serving(client, queue) as host:
        run = await host.run(shell("a"), agent("make", "a"), shell("b", "make"), shell("c", "a"))
        await over(run)
    return run


async def pipeline_failed(client: Client, queue: str) -> Handle:
    """A stage is retried and fails for good; stages that need it are skipped."""
    async with serving(client, queue) as host:
        run = await host.run(shell("bad", retry=1), shell("after", "bad"), shell("beside"))
        await over(run)
    return run


async def pipeline_paused(client: Client, queue: str) -> Handle:
    """A stage's tree still waits for a person, and the run with it."""
    asks = agent("ask", prompt="asks")
    async with serving(client, queue) as host:
        run = await host.run(asks, shell("after", "ask"))
        await host.until(RunState.AWAITING_HUMAN)
        await quiet(run)
    return run


async def pipeline_cancelled(client: Client, queue: str) -> Handle:
    async with serving(client, queue) as host:
        run = await host.run(shell("a"), shell("held", "a"), shell("after", "held"))
        await host.cancel(run)
        await over(run)
    return run


async def firing_started(client: Client, queue: str) -> Handle:
    async with serving(client, queue) as host:
        return await host.fire()


async def firing_skipped(client: Client, queue: str) -> Handle:
    """A firing while an earlier run of the pipeline is active."""
    async with serving(client, queue) as host:
        run = await host.run(shell("held"))
        await host.stages.held.wait()
        fired = await host.fire()
        await host.cancel(run)
        await over(run)
    return fired


async def quiet(workflow: Handle) -> None:
    """Wait until its worker has nothing left to do."""
    size = 0
    while size != (size := len((await workflow.fetch_history()).events)):
        await asyncio.sleep(0.5)


_ALL = (
    *(pipeline_succeeded, pipeline_failed, pipeline_paused, pipeline_cancelled),
    *(firing_started, firing_skipped),
)
SHAPES: dict[str, Callable[[Client, str], Awaitable[Handle]]] = {shape.__name__: shape for shape in _ALL}
