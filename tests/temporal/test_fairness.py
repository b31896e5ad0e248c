"""One slot on a host: a wide tree that came first, and a small one after it (ruling C8)."""

import asyncio
from functools import partial

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from tests.temporal.host import Host, an_input, ended, says, serving, start
from tests.tree.simulator import delegation
from tests.waiting import until
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.long_texts import Text
from workflows.model.states import TaskState

WIDTH = 12
LEGS = tuple(delegation(f"l{n}") for n in range(WIDTH))


def answer(run: JobRun) -> JobOutcome:
    return says(run, LEGS if run.assignment.prompt.inline == "wide" else "approved")


async def queued(client: Client, *workflow_ids: str) -> None:
    """Wait until each of these workflows waits for its run."""
    for workflow_id in workflow_ids:
        await until(partial(_waits, client, workflow_id), workflow_id)


async def _waits(client: Client, workflow_id: str) -> bool:
    try:
        seen = await client.get_workflow_handle(workflow_id).describe()
    except RPCError:
        return False  # not started yet
    return bool(seen.raw_description.pending_activities)


@pytest.mark.ruling("C8")
async def test_a_small_tree_does_not_wait_for_all_of_a_wide_one(client: Client, queue: str) -> None:
    host = Host(answer, held={each.id for each in LEGS})
    async with serving(client, queue, host, slots=1):
        wide = await start(client, queue, an_input(prompt=Text(inline="wide")))
        await queued(client, *(f"{wide.id}.{n}" for n in range(1, WIDTH + 1)))
        await host.until(lambda: len(host.runs) == 2)
        small = await start(client, queue, an_input(prompt=Text(inline="small")))
        await queued(client, small.id)
        host.release(*host.held)
        closed = await asyncio.gather(ended(wide), ended(small))
    assert [each.task_state for each in closed] == [TaskState.DONE, TaskState.DONE]
    order = [run.job_id for run in host.runs[2:]]
    assert len(order) == WIDTH + 1, "eleven legs, the continuation, and the small tree"
    assert order.index(small.id) < WIDTH // 2, "it was queued behind eleven"
