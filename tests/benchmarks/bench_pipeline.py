"""Cost of a stage: a chain of stages compared with an equal chain of bare Temporal activities.

`python -m tests.benchmarks.bench_pipeline`. Stages that end at once represent commands, on both sides; our side writes
rows to a real store. Prints ratios only.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder
from activities.pipelines.record_run import RunRecorder
from activities.sealing import seal_check
from activities.sealing.seal_check import with_gate
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import run_rows
from activities.store.database import open_store
from tests.benchmarks.bare import BareChain, nothing
from tests.benchmarks.bench_tree import server
from tests.pipeline.plans import an_input, shell
from workflows.pipeline.plan import StageOutcome, StageState
from workflows.pipeline.stages import StageRun
from workflows.temporal.calls import agents_queue
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.runner import WORKFLOWS, runner

LENGTHS = (1, 5, 20)
ROUNDS = {1: 15, 5: 11, 20: 7}
Play = Callable[[int], Awaitable[str]]


@asynccontextmanager
async def ours(client: Client, home: Home) -> AsyncIterator[Play]:
    """Run the workers as a host does."""
    context = Context(home, Settings(), open_store(home))
    recorder, books = TreeRecorder(context), RunRecorder(context)

    @activity.defn(name="run_stage")
    async def run_stage(run: StageRun) -> StageOutcome:
        """End at once, with the rows of a real stage."""
        outcome = StageOutcome(state=StageState.SUCCEEDED, summary=run.stage_id)
        await asyncio.to_thread(run_rows.stage_begins, context.store, run.row)
        await asyncio.to_thread(run_rows.stage_ends, context.store, run.row, outcome)
        return outcome

    runs = Worker(
        client,
        task_queue="ours",
        workflows=WORKFLOWS,
        activities=[*recorder.activities, books.record_run],
        activity_executor=ThreadPoolExecutor(8),
        workflow_runner=with_gate(runner(), client.data_converter, seal_check.ender(client)),
    )

    async def play(length: int) -> str:
        stages = [shell(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(length)]
        name = f"pipeline-{uuid4().hex}"
        start = an_input(*stages).model_copy(
            update={"run_id": f"prun-{uuid4().hex}", "host": "ours", "created_at": time.time()}
        )
        closed = await client.execute_workflow(PipelineRun.run, start, id=name, task_queue="ours")
        rows = run_rows.stages_of(context.store, closed.run_id)
        assert [row.state for row in rows] == [StageState.SUCCEEDED] * length, "it is the real thing that is measured"
        return name

    async with runs, Worker(client, task_queue=agents_queue("ours"), activities=[run_stage]):
        yield play


@asynccontextmanager
async def bare(client: Client) -> AsyncIterator[Play]:
    """Run the bare workflows."""

    async def play(length: int) -> str:
        name = f"bare-{uuid4().hex}"
        await client.execute_workflow(BareChain.run, args=[length, "bare-steps"], id=name, task_queue="bare")
        return name

    async with (
        Worker(client, task_queue="bare", workflows=[BareChain]),
        Worker(client, task_queue="bare-steps", activities=[nothing]),
    ):
        yield play


async def time_play(play: Play, length: int) -> tuple[float, str]:
    began = time.perf_counter()
    name = await play(length)
    return time.perf_counter() - began, name


async def events(client: Client, name: str) -> int:
    return len((await client.get_workflow_handle(name).fetch_history()).events)


async def compare(client: Client, one: Play, other: Play, length: int) -> tuple[float, float]:
    """Compare in turns, so that other load affects both; return the times of such a run, ours and bare."""
    pairs = []
    for round_ in range(ROUNDS[length]):
        first, second = (one, other) if round_ % 2 else (other, one)
        results = {first: await time_play(first, length), second: await time_play(second, length)}
        pairs.append((results[one], results[other]))
    ratio = statistics.median(a / b for (a, _), (b, _) in pairs)
    mine, floor = [await events(client, name) for _, name in pairs[-1]]
    print(f"{length:3} stages: time {ratio:4.2f} of bare Temporal's   events {mine} / {floor} = {mine / floor:4.2f}")
    return statistics.median(a for (a, _), _ in pairs), statistics.median(b for _, (b, _) in pairs)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).ensure()
        async with server(home) as client, ours(client, home) as one, bare(client) as other:
            for play in (one, other):
                await play(3)
            took = {length: await compare(client, one, other, length) for length in LENGTHS}
            more = max(LENGTHS) - min(LENGTHS)
            mine, floor = ((took[max(LENGTHS)][side] - took[min(LENGTHS)][side]) * 1000 / more for side in (0, 1))
            print(f"from stage to stage: {mine:.1f} ms / {floor:.1f} ms = {mine / floor:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
    os._exit(0)
