"""Recovery after kill -9 of the worker, repeatedly: `python -m tests.benchmarks.bench_recovery`.

Eight running agents, and trees of many short steps, on one server. The worker is killed at random moments and restarted
at once, first with the take-over by a new worker and then without. Prints figures for people; asserts nothing. The
argument is the number of kills on each side.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from sqlalchemy import func, select
from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import schema
from bridge.operations.jobs import jobs
from bridge.operations.orders import new_jobs, trees
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.service import Service
from tests.e2e.conftest import set_up
from tests.e2e.killed_worker import WORKER, KilledWorker, use_default_namespace
from tests.temporal.server import serve
from tests.waiting import until
from workflows.temporal import calls

LOOK_SECONDS = 0.2
AFTER_A_KILL = 15.0
"""Seconds after a kill in which a step's timeout counts as caused by it."""
AGENTS, TREES, STEPS = 8, 4, 12
WAITS = """while [ ! -e "$PROOF.go" ]; do sleep 0.2; done
echo '{"service_result": {"decision": "approved", "summary": "done"}}'
"""
STEP = """sleep 0.$(($$ %% 9))
echo '{"service_result": {"decision": "approved", "summary": "done"%s}}'
"""
AS_IT_WAS = """
from datetime import timedelta
from activities import takeover, worker
from workflows.temporal import calls

async def nothing(*_):
    return 0

calls.TASK_TIMEOUT = timedelta(seconds=10)
takeover.take_over = nothing
worker.main()
"""


def leader_script() -> str:
    """Return an agent's script that delegates a chain of steps."""
    legs = ", ".join(
        f'{{"id": "s{n}", "agent": "stepper", "action": "ask", "prompt": "go on", "deps": [{before}]}}'
        for n in range(STEPS)
        for before in (f'"s{n - 1}"' if n else "",)
    )
    first, last = STEP % f', "delegations": [{legs}]', STEP % ""
    return f'if [ "$SERVICE_CONTINUATION" = none ]; then\n{first}else\n{last}fi\n'


class Measured:
    """One side: its figures, in seconds after each kill."""

    def __init__(self, client: Client, service: Service, worker: KilledWorker) -> None:
        self.client, self.service, self.worker = client, service, worker
        self.agents: list[str] = []
        self.trees: list[str] = []
        self.kills: list[float] = []
        self.ready: list[float] = []
        self.attached: list[tuple[float, float]] = []
        self.went_on: list[tuple[float, float]] = []
        """Pairs of the time after the kill, and the time at which the worker was ready."""

    async def start(self, agent: str) -> str:
        return await new_jobs.start(self.service, NewJob(agent, "ask", "go", "acme/shop"))

    async def keep_stepping(self) -> None:
        """Start trees until there are `TREES` active ones."""
        self.trees = [tree for tree in self.trees if not self.is_over(tree)]
        while len(self.trees) < TREES:
            self.trees.append(await self.start("leader"))

    def is_over(self, tree: str) -> bool:
        tree_ended = (schema.events.c.root_job_id == tree) & (schema.events.c.kind == "tree_ended")
        with self.service.store.connect() as connection:
            return connection.execute(select(schema.events.c.seq).where(tree_ended)).first() is not None

    def last_event(self, tree: str) -> int:
        query = select(func.max(schema.events.c.seq)).where(schema.events.c.root_job_id == tree)
        with self.service.store.connect() as connection:
            return connection.execute(query).scalar_one() or 0

    async def kill(self, moment: float) -> None:
        await self.keep_stepping()
        await asyncio.sleep(moment)
        self.worker.kill()
        at = time.time()
        self.kills.append(at)
        live = [tree for tree in self.trees if not self.is_over(tree)]
        _, attached, went_on = await asyncio.gather(
            self.restart(at),
            asyncio.gather(*[self.until_attached(job, at) for job in self.agents]),
            asyncio.gather(*[self.until_on(tree, self.last_event(tree), at) for tree in live]),
        )
        self.attached += [(after, self.ready[-1]) for after in attached]
        self.went_on += [(after, self.ready[-1]) for after in went_on]

    async def restart(self, at: float) -> None:
        await self.worker.start()
        self.ready.append(time.time() - at)

    async def until_attached(self, job: str, at: float) -> float:
        """Wait until the job's activity is with the new worker."""
        handle = self.client.get_workflow_handle(job)
        while not (
            (pending := (await handle.describe()).raw_description.pending_activities)
            and pending[0].state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
            and pending[0].last_started_time.ToMilliseconds() > at * 1000
        ):
            await asyncio.sleep(LOOK_SECONDS)
        return pending[0].last_started_time.ToMilliseconds() / 1000 - at

    async def until_on(self, tree: str, last: int, at: float) -> float:
        """Wait for the tree's next event."""
        while self.last_event(tree) == last and not self.is_over(tree):
            await asyncio.sleep(LOOK_SECONDS)
        return time.time() - at

    async def false_alarms(self) -> str:
        """Count offers beyond one for each kill, and steps that timed out while no worker was dead."""
        offers = 0
        for job in self.agents:
            described = await self.client.get_workflow_handle(job).describe()
            pending = described.raw_description.pending_activities
            offers += sum(max(activity.attempt - 1 - len(self.kills), 0) for activity in pending)
        timed_out: dict[bool, int] = {True: 0, False: 0}
        tasks = 0
        async for workflow in self.client.list_workflows():
            handle = self.client.get_workflow_handle(workflow.id, run_id=workflow.run_id)
            async for event in handle.fetch_history_events():
                tasks += event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
                if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
                    at = event.event_time.ToMilliseconds() / 1000
                    timed_out[any(0 <= at - kill <= AFTER_A_KILL for kill in self.kills)] += 1
        return f"not needed: {offers} offers, {timed_out[False]} of {tasks} steps; after a kill {timed_out[True]} steps"


def line(what: str, figures: list[float]) -> str:
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    return f"  {what:<28} min {low:5.1f}  median {middle:5.1f}  max {high:5.1f} s   ({len(figures)})"


async def side(name: str, kills: int, words: tuple[str, ...], step: timedelta) -> None:
    setattr(trees, "TASK_TIMEOUT", step)  # noqa: B010
    moments = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        installed = await asyncio.to_thread(set_up, Path(folder))
        for agent, script in (("waiter", WAITS), ("stepper", STEP % ""), ("leader", leader_script())):
            await asyncio.to_thread(installed.agent, agent, script)
        with (installed.home / "config.toml").open("a") as config:
            config.write(f"[worker]\nmax_parallel_jobs = {AGENTS + TREES}\n")
        use_default_namespace(installed)
        async with serve() as client:
            address = client.service_client.config.target_host
            os.environ["SERVICE_TEMPORAL_ADDRESS"] = address
            measured = Measured(client, Service(Home(installed.home)), KilledWorker(installed, address, words))
            await measured.worker.start()
            measured.agents = [await measured.start("waiter") for _ in range(AGENTS)]
            await until(lambda: all(jobs.get(measured.service, job).started_at for job in measured.agents))
            for _ in range(kills):
                await measured.kill(moments.uniform(2.0, 5.0))
            print(f"{name}, {kills} kills:")
            print(line("the worker is ready", measured.ready))
            for what, figures in (("an agent is attached", measured.attached), ("a tree steps on", measured.went_on)):
                print(line(what, [after for after, _ in figures]))
                print(line("  from when it was ready", [after - ready for after, ready in figures]))
            print("  " + await measured.false_alarms(), flush=True)
            (Path(folder) / "proof.go").touch()
            await until(lambda: all(measured.is_over(job) for job in measured.agents))
            measured.worker.kill()


async def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    await side("now", kills, WORKER, calls.TASK_TIMEOUT)
    await side("by the server's timeouts alone", kills, ("-c", AS_IT_WAS), timedelta(seconds=10))


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
    os._exit(0)
