"""Cost of trees that wait for people: `python -m tests.benchmarks.bench_paused`, with BENCH_TREES trees (2000).

A worker process of its own runs the real workflows, the real store and a real log of notifications, on the embedded
server; only the agents' runs are fake, and just ask. Prints figures for people; asserts only that trees run.
"""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder
from activities.notify.deliver import Deliverer
from activities.sealing import seal_check
from activities.sealing.seal_check import with_gate
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import round_rows
from activities.store.database import open_store
from activities.temporal import data_converter
from activities.worker import CACHED_TREES, STICKY_TIMEOUT, TREE_STEPS, WRITING
from bridge.daemon.server import server_command, server_environment
from bridge.machine.ports import choose_port
from tests.benchmarks.bench_tree import connect
from tests.temporal.host import an_input
from tests.tree.simulator import outcome
from workflows.contract.models import HumanQuestion
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import ResumeOrder
from workflows.model.states import Continuation, JobState
from workflows.temporal import search
from workflows.temporal.calls import agents_queue
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import TreeStart
from workflows.temporal.runner import WORKFLOWS, runner

TREES = int(os.environ.get("BENCH_TREES", "2000"))
RESUMED = 50
CACHED = CACHED_TREES * TREE_STEPS
REST = 20.0
WARM_UP = 50
AT_ONCE = 16
QUEUE = "paused"
QUESTION = HumanQuestion(id="store", prompt="Redis or memory? " * 10, choices=("redis", "memory"))


@activity.defn(name="run_job")
def run_job(run: JobRun) -> JobOutcome:
    """Ask in the root job; in the job after its answer, record the time of its dispatch, and approve."""
    if run.continuation is Continuation.NONE:
        return outcome(run, "approved", human_questions=(QUESTION,))
    with Path(os.environ["BENCH_DISPATCHED"]).open("a") as file:
        file.write(f"{run.root_job_id} {time.time()}\n")
    return outcome(run, "approved")


async def serve(address: str, home: Home) -> None:
    """Run the workers as a host does, with the cache size of production."""
    client, context = (
        await connect(address, data_converter(home, Settings())),
        Context(home, Settings(), open_store(home)),
    )
    recorder, threads = TreeRecorder(context), ThreadPoolExecutor(WRITING)
    trees = Worker(
        client,
        task_queue=QUEUE,
        workflows=WORKFLOWS,
        activities=[*recorder.activities, Deliverer(context).deliver],
        activity_executor=threads,
        workflow_runner=with_gate(runner(), client.data_converter, seal_check.ender(client)),
        max_cached_workflows=CACHED,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
    )
    agents = Worker(
        client,
        task_queue=agents_queue(QUEUE),
        activities=[run_job],
        activity_executor=threads,
        max_concurrent_activities=WRITING,
    )
    async with trees, agents:
        await asyncio.Event().wait()


@dataclass
class Process:
    """A process, as the kernel accounts for it."""

    pid: int

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Stage:
    """The server, the worker, and a person's actions."""

    client: Client
    home: Home
    server: Process
    worker: Process
    dispatched: Path

    def __post_init__(self) -> None:
        self.store = open_store(self.home)

    async def pause(self, count: int) -> list[str]:
        """Start so many trees, a few at a time, and wait until all of them wait for a person."""
        gate, before = asyncio.Semaphore(AT_ONCE), len(round_rows.open_rounds(self.store))

        async def one() -> str:
            goal = an_input()
            first = TreeStart(input=goal, host=QUEUE)
            run = JobRun.model_validate(goal.model_dump() | {"job_id": goal.root_job_id})
            attributes = search.attributes(run, JobState.RUNNING.value)
            async with gate:
                handle = await self.client.start_workflow(
                    DelegationTree.run, first, id=goal.root_job_id, task_queue=QUEUE, search_attributes=attributes
                )
            return str(handle.id)

        names = list(await asyncio.gather(*(one() for _ in range(count))))
        while (waiting := len(round_rows.open_rounds(self.store)) - before) < count:
            print(f"  {waiting} of {count} wait", file=sys.stderr, flush=True)
            await asyncio.sleep(2)
        await self.until_notified()
        return names

    async def until_notified(self) -> None:
        """Wait until the notifications are sent too."""
        while await self._running_notifications():
            await asyncio.sleep(1)

    async def _running_notifications(self) -> int:
        query = "WorkflowType = 'Notify' AND ExecutionStatus = 'Running'"
        return (await self.client.count_workflows(query)).count

    async def answer(self, tree: str) -> float:
        """Answer as the command line does; return the seconds until the next job is dispatched."""
        handle = self.client.get_workflow_handle(tree)
        order = ResumeOrder(actor="bench", job_id=tree, verb="answer", text="store: redis", request_id=uuid4().hex)
        began = time.time()
        _: Any = await handle.execute_update("resume", order, id=order.request_id)
        await handle.result()
        return float(self._dispatches()[tree]) - began

    def _dispatches(self) -> dict[str, str]:
        return dict(line.split(" ") for line in self.dispatched.read_text().splitlines())

    async def at_rest(self) -> tuple[float, float]:
        """Return the CPU seconds of the worker and of the server while idle."""
        await asyncio.sleep(8)
        before = self.worker.cpu, self.server.cpu
        await asyncio.sleep(REST)
        return self.worker.cpu - before[0], self.server.cpu - before[1]

    def database(self) -> float:
        return sum(path.stat().st_size for path in self.home.root.rglob("temporal*.db*")) / 2**20


async def measure(stage: Stage) -> None:
    for tree in await stage.pause(WARM_UP):
        await stage.answer(tree)
    idle, server_idle, idle_cpu, disk = *_memory(stage), await stage.at_rest(), stage.database()
    began = time.monotonic()
    names = await stage.pause(TREES)
    took = time.monotonic() - began
    full, server_full, full_cpu = *_memory(stage), await stage.at_rest()
    print(f"{TREES} trees paused in {took:.0f} s: {TREES / took:.1f} per second; cache of {CACHED}")
    _ratio("worker RSS, MB", full, idle)
    _ratio("worker CPU, seconds in 20 s at rest", full_cpu[0], idle_cpu[0])
    _ratio("server RSS, MB", server_full, server_idle)
    _ratio("server CPU, seconds in 20 s at rest", full_cpu[1], idle_cpu[1])
    grown = stage.database()
    print(f"server database {grown:.1f} MB, {(grown - disk) * 1024 / TREES:.1f} KB a tree")
    random.seed(7)
    chosen = random.sample(names[: max(RESUMED, TREES - CACHED)], min(RESUMED, TREES))
    taken = sorted([await stage.answer(tree) for tree in chosen])
    fresh = sorted([await stage.answer(tree) for tree in await stage.pause(len(chosen))])
    for name, at in (("p50", 0.5), ("p95", 0.95)):
        _ratio(f"resume to dispatch, evicted / cached, ms, {name}", *(1000 * _at(each, at) for each in (taken, fresh)))
    print(f"worker RSS after {len(chosen)} resumes: {stage.worker.megabytes / idle:.2f} of idle")


def _memory(stage: Stage) -> tuple[float, float]:
    return stage.worker.megabytes, stage.server.megabytes


def _at(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def _ratio(what: str, one: float, other: float) -> None:
    ratio = f"{one / other:.2f}" if other else "-"
    print(f"{what}: {one:.2f} / {other:.2f} = {ratio}", flush=True)


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Process]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield Process(process.pid)
    finally:
        process.kill()
        process.wait()


async def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home, port = Home(Path(folder)).ensure(), choose_port(0, "the server").port
        address, dispatched = f"127.0.0.1:{port}", home.root / "dispatched"
        server = server_command(home, port, None, search_attributes=tuple(search.NAMES.items()), log_level="error")
        worker = (sys.executable, "-m", "tests.benchmarks.bench_paused", address, str(home.root))
        with (
            running(server, server_environment()) as one,
            running(worker, os.environ | {"BENCH_DISPATCHED": str(dispatched)}) as other,
        ):
            await measure(Stage(await connect(address, data_converter(home, Settings())), home, one, other, dispatched))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Home(Path(sys.argv[2]))) if len(sys.argv) > 1 else main())
    sys.stdout.flush()
    os._exit(0)
