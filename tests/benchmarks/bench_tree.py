"""Cost of a tree compared with bare Temporal workflows of equal shape: `python -m tests.benchmarks.bench_tree`.

Both sides run in one process on one embedded server, in turns; figures are medians. Our side is the real shell with the
real store; only the agents' runs are empty. Prints figures for people; asserts nothing.
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
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.worker import (
    Replayer,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInstance,
    WorkflowInstanceDetails,
)

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder
from activities.sealing import seal_check
from activities.sealing.seal_check import with_gate
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import job_rows
from activities.store.database import open_store
from activities.temporal import data_converter
from bridge.daemon.server import NAMESPACE, server_command, server_environment
from bridge.machine.ports import choose_port
from tests.benchmarks.bare import BareChild, BareTree, nothing
from tests.temporal.host import an_input, start
from tests.tree.simulator import delegation, outcome
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.states import JobState
from workflows.temporal import search
from workflows.temporal.calls import agents_queue
from workflows.temporal.runner import WORKFLOWS, runner

SIZES = (1, 4, 16, 64)
ROUNDS = {1: 15, 4: 11, 16: 7, 64: 5}
BOUNDS = Bounds(max_delegation_width=64, max_delegation_total_jobs=66)
Play = Callable[[int], Awaitable[str]]
"""A function that runs a tree of so many legs and returns its workflow's id."""


@activity.defn(name="run_job")
async def run_job(run: JobRun) -> JobOutcome:
    """End at once: the root's prompt is the number of legs to delegate."""
    count = int(run.assignment.prompt.inline or 0) if run.parent_job_id is None else 0
    return outcome(run, "approved", *(delegation(f"l{n}", action="ask") for n in range(count)))


@asynccontextmanager
async def server(home: Home) -> AsyncIterator[Client]:
    """Run the embedded server as the daemon does, with a file."""
    port = choose_port(0, "the server").port
    command = server_command(home, port, None, search_attributes=tuple(search.NAMES.items()), log_level="error")
    process = await asyncio.create_subprocess_exec(
        *command, env=server_environment(), stdout=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield await connect(f"127.0.0.1:{port}", data_converter(home, Settings()))
    finally:
        process.terminate()
        await process.wait()


async def connect(address: str, converter: DataConverter = pydantic_data_converter) -> Client:
    for _ in range(100):
        try:
            client = await Client.connect(address, namespace=NAMESPACE, data_converter=converter)
            await client.count_workflows()
        except Exception:
            await asyncio.sleep(0.1)
        else:
            return client
    raise SystemExit("the server did not come up")


@asynccontextmanager
async def ours(client: Client, home: Home, queue: str = "ours") -> AsyncIterator[Play]:
    """Run the workers as a host does."""
    context = Context(home, Settings(), open_store(home))
    recorder = TreeRecorder(context)
    trees = Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=[*recorder.activities],
        activity_executor=ThreadPoolExecutor(8),
        workflow_runner=with_gate(runner(), client.data_converter, seal_check.ender(client)),
    )

    async def play(legs: int) -> str:
        goal = an_input(bounds=BOUNDS, prompt={"inline": str(legs)})
        tree = await start(client, queue, goal)
        await tree.result()
        return tree.id

    async with trees, Worker(client, task_queue=agents_queue(queue), activities=[run_job]):
        rows = job_rows.tree(context.store, await play(3))
        assert [row.state for row in rows] == [JobState.SUCCEEDED] * 5, "it is the real thing that is measured"
        yield play


@asynccontextmanager
async def bare(client: Client, activities: str) -> AsyncIterator[Play]:
    """Run the bare workflows."""

    async def play(legs: int) -> str:
        name = f"bare-{uuid4().hex}"
        await client.execute_workflow(BareTree.run, args=[legs, activities], id=name, task_queue="bare")
        return name

    trees = Worker(client, task_queue="bare", workflows=[BareTree, BareChild], activities=[nothing])
    async with trees, Worker(client, task_queue="bare-agents", activities=[nothing]):
        yield play


async def events(client: Client, tree: str, legs: int) -> int:
    """Return the number of events of the root and all its children."""
    names = [tree, *(f"{tree}.{n}" for n in (range(legs) if tree.startswith("bare") else range(1, legs + 1)))]
    return sum([len((await client.get_workflow_handle(name).fetch_history()).events) for name in names])


class TimedSteps(UnsandboxedWorkflowRunner):
    """A runner that measures the processor time of each step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        activate = instance.activate

        def timed(act: WorkflowActivation) -> WorkflowActivationCompletion:
            began = time.thread_time()
            try:
                return activate(act)
            finally:
                self.seconds.append(time.thread_time() - began)

        instance.activate = timed  # type: ignore[method-assign]
        return instance


async def steps(client: Client, tree: str) -> str:
    """Replay a tree, and return the processor time of its steps."""
    runner = TimedSteps()
    replays = Replayer(workflows=WORKFLOWS, workflow_runner=runner, data_converter=client.data_converter)
    await replays.replay_workflow(await client.get_workflow_handle(tree).fetch_history())
    return (
        f"processor time of all steps {sum(runner.seconds) * 1000:4.0f} ms, of one {max(runner.seconds) * 1000:3.0f} ms"
    )


async def time_play(play: Play, legs: int) -> tuple[float, str]:
    began = time.perf_counter()
    name = await play(legs)
    return time.perf_counter() - began, name


async def compare(client: Client, one: Play, other: Play, legs: int) -> str:
    """Compare in turns, so that other load affects both sides; `one` is ours."""
    left: list[tuple[float, str]] = []
    right: list[tuple[float, str]] = []
    for round_ in range(ROUNDS[legs]):
        for play, results in ((one, left), (other, right)) if round_ % 2 else ((other, right), (one, left)):
            results.append(await time_play(play, legs))
    mine, floor = (statistics.median(seconds for seconds, _ in side) for side in (left, right))
    ratios = statistics.median(a / b for (a, _), (b, _) in zip(left, right, strict=True))
    jobs = legs + 2
    mine_events, floor_events = [
        statistics.median([await events(client, name, legs) for _, name in side[-3:]]) for side in (left, right)
    ]
    return (
        f"{legs:3} legs: {mine * 1000:7.0f} ms / {floor * 1000:7.0f} ms = {ratios:4.2f}   events per job: "
        f"{mine_events / jobs:5.2f} / {floor_events / jobs:5.2f} = {mine_events / floor_events:4.2f}   "
        f"{await steps(client, left[-1][1])}"
    )


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).ensure()
        async with server(home) as client, ours(client, home) as one:
            for queue, where in (("bare-agents", "another"), ("bare", "the same")):
                async with bare(client, queue) as other:
                    print(f"ours / bare Temporal, whose activities are on {where} queue")
                    for play in (one, other):
                        await play(4)
                    for legs in SIZES:
                        print(await compare(client, one, other, legs), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
    os._exit(0)
