"""A workflow task that dies with its worker times out soon, in every type of workflow."""

from datetime import timedelta

import pytest
from temporalio.client import Client

from bridge.operations.orders import new_jobs
from bridge.operations.orders.new_jobs import NewJob
from tests.temporal.host import Host, ended, script, serving, start
from tests.temporal.pipeline_stage import PipelineHost
from tests.temporal.server import histories
from tests.tree.simulator import delegation
from tests.waiting import until
from workflows.temporal.calls import TASK_TIMEOUT

pytestmark = pytest.mark.ruling("engine:restores")


async def timeouts(client: Client, queue: str, *wanted: str) -> dict[str, timedelta]:
    """Return the task timeout of each workflow type; the server lists new workflows with a delay."""

    by_type: dict[str, timedelta] = {}

    async def listed() -> bool:
        async for history in histories(client, [queue]):
            begun = history.events[0].workflow_execution_started_event_attributes
            by_type[begun.workflow_type.name] = begun.workflow_task_timeout.ToTimedelta()
        return set(wanted) <= set(by_type)

    await until(listed, lambda: by_type)
    return by_type


async def test_of_a_tree_that_was_just_started(client: Client, queue: str, host: PipelineHost) -> None:
    await new_jobs.start(host.service, NewJob("dev", "ask", "go", "acme/shop"))
    assert await timeouts(client, queue, "DelegationTree") == {"DelegationTree": TASK_TIMEOUT}


async def test_of_what_a_tree_starts(client: Client, queue: str) -> None:
    lines = script({"root": (delegation("a"),), "a": "failed"})
    async with serving(client, queue, Host(lines)):
        await ended(await start(client, queue, task_timeout=TASK_TIMEOUT))
        by_type = await timeouts(client, queue, "Delegation", "Notify")
    assert set(by_type.values()) == {TASK_TIMEOUT}


async def test_of_a_run_and_its_stages(client: Client, queue: str, host: PipelineHost) -> None:
    stage = "{id: s, kind: agent, agent: dev, action: ask, prompt: go}"
    await host.add(f"name: p\nrepo: acme/shop\nstages:\n  - {stage}\n")
    async with host.working():
        await host.until_over(await host.run())
        by_type = await timeouts(client, queue, "PipelineRun", "DelegationTree")
    assert set(by_type.values()) == {TASK_TIMEOUT}
