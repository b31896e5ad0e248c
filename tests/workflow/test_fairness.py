"""One slot on a host, a wide tree that was there first, and a small one that comes after it (ruling C8)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Worker

from workflows.calls import agents_queue
from workflows.contract.models import Action, Decision, Delegation
from workflows.delegation_tree import DelegationTree, TreeStart
from workflows.runner import WORKFLOWS, runner
from workflows.tree import ids
from workflows.tree.commands import CloseTree
from workflows.tree.jobs import JobOutcome, JobRun, JobState, TaskState, Text
from workflows.tree.jobs import Worker as Agent
from workflows.tree.records import Records
from workflows.tree.state import TreeInput

SCOUT = Agent(name="scout", runtime="shell", command=("true",), capabilities=("ask",))
WIDTH = 12


@dataclass
class Host:
    """Has room for one run; the first leg of the wide tree keeps it until it is let go."""

    held: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    order: list[str] = field(default_factory=list)

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        self.order.append(run.root_job_id)
        legs: tuple[Delegation, ...] = ()
        if run.prompt.inline == "wide":
            legs = tuple(Delegation(id=f"l{n}", agent="scout", action=Action.ASK, prompt="look") for n in range(WIDTH))
        elif run.delegation_id and not self.held.is_set():
            self.held.set()
            await self.go.wait()
        return JobOutcome(
            job_id=run.job_id,
            state=JobState.SUCCEEDED,
            decision=Decision.APPROVED,
            delegations=legs,
            agents=(SCOUT,) if legs else (),
        )

    @activity.defn(name="record")
    async def record(self, records: Records) -> None:
        del records


@asynccontextmanager
async def one_slot(client: Client, queue: str, host: Host) -> AsyncIterator[None]:
    async with (
        Worker(client, task_queue=queue, workflows=WORKFLOWS, activities=[host.record], workflow_runner=runner()),
        Worker(client, task_queue=agents_queue(queue), activities=[host.run_job], max_concurrent_activities=1),
    ):
        yield


async def start(client: Client, queue: str, goal: str) -> WorkflowHandle[DelegationTree, CloseTree]:
    root = ids.root_id(time.time_ns() // 1_000_000, uuid4().int)
    tree = TreeInput(
        root_job_id=root,
        task_id=ids.task_id(root),
        repo="acme/shop",
        worker=SCOUT,
        action=Action.ASK,
        prompt=Text(inline=goal),
        created_at=time.time(),
    )
    return await client.start_workflow(DelegationTree.run, TreeStart(input=tree, host=queue), id=root, task_queue=queue)


async def queued(client: Client, *workflow_ids: str) -> None:
    """Until each of these waits for its activity."""
    for workflow_id in workflow_ids:
        handle = client.get_workflow_handle(workflow_id)
        async with asyncio.timeout(30):
            while not await _pending(handle):
                await asyncio.sleep(0.05)


async def _pending(handle: WorkflowHandle[object, object]) -> int:
    try:
        return len((await handle.describe()).raw_description.pending_activities)
    except RPCError:
        return 0  # not started yet


@pytest.mark.ruling("C8")
async def test_a_small_tree_does_not_wait_for_all_of_a_wide_one(client: Client, queue: str) -> None:
    host, name = Host(), queue
    async with one_slot(client, name, host):
        wide = await start(client, name, "wide")
        await host.held.wait()
        await queued(client, *(f"{wide.id}.{n}" for n in range(2, WIDTH + 1)))
        small = await start(client, name, "small")
        await queued(client, small.id)
        host.go.set()
        closed = await asyncio.gather(wide.result(), small.result())
    assert [each.task_state for each in closed] == [TaskState.DONE, TaskState.DONE]
    after = host.order[2:]
    assert len(after) == WIDTH + 1, "eleven legs, the continuation, and the small tree"
    assert after.index(small.id) < WIDTH // 2, "it was queued behind eleven"
