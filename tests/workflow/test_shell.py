"""The Temporal shell over the reducer, with a scripted agent in place of the host."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from workflows import search
from workflows.calls import agents_queue
from workflows.contract.models import Action, Decision
from workflows.delegation_tree import DelegationTree, TreeStart
from workflows.policy.settings import TreeSettings
from workflows.runner import WORKFLOWS, runner
from workflows.tree import ids
from workflows.tree.commands import CloseTree
from workflows.tree.jobs import JobOutcome, JobRun, JobState, TaskState, Text
from workflows.tree.jobs import Worker as Agent
from workflows.tree.records import Records
from workflows.tree.state import TreeInput


@dataclass
class Host:
    """Stands where the host's activities stand."""

    answer: Callable[[JobRun], JobOutcome]
    written: list[Records] = field(default_factory=list)
    runs: list[JobRun] = field(default_factory=list)

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        self.runs.append(run)
        return self.answer(run)

    @activity.defn(name="record")
    async def record(self, records: Records) -> None:
        self.written.append(records)


@asynccontextmanager
async def serving(client: Client, queue: str, host: Host) -> AsyncIterator[None]:
    async with (
        Worker(client, task_queue=queue, workflows=WORKFLOWS, activities=[host.record], workflow_runner=runner()),
        Worker(client, task_queue=agents_queue(queue), activities=[host.run_job]),
    ):
        yield


async def start(client: Client, queue: str) -> WorkflowHandle[DelegationTree, CloseTree]:
    root = ids.root_id(time.time_ns() // 1_000_000, uuid4().int)
    tree = TreeInput(
        root_job_id=root,
        task_id=ids.task_id(root),
        title="look",
        repo="acme/shop",
        worker=Agent(name="scout", runtime="shell", command=("true",), capabilities=("ask",)),
        action=Action.ASK,
        prompt=Text(inline="look"),
        settings=TreeSettings(),
        created_at=time.time(),
    )
    return await client.start_workflow(
        DelegationTree.run, TreeStart(input=tree, host=queue), id=root, task_queue=queue, static_summary="ask: look"
    )


def done(run: JobRun) -> JobOutcome:
    return JobOutcome(job_id=run.job_id, state=JobState.SUCCEEDED, decision=Decision.APPROVED, summary="fine")


async def test_a_tree_that_does_not_delegate_runs_its_root_and_closes(client: Client, queue: Callable[[], str]) -> None:
    host, name = Host(done), queue()
    async with serving(client, name, host):
        tree = await start(client, name)
        closed = await tree.result()
        described = await tree.describe()
    assert (closed.task_state, closed.decision, closed.summary) == (TaskState.DONE, Decision.APPROVED, "fine")
    assert [run.job_id for run in host.runs] == [tree.id]
    assert [job.state for records in host.written for job in records.jobs] == [JobState.RUNNING, JobState.SUCCEEDED]
    assert described.typed_search_attributes[search.STATE] == "done"
