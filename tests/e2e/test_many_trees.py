"""More trees at once than fit into the workers' memory: no step is lost (ruling B1)."""

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.client import Client

from activities.worker import TREE_STEPS
from bridge.operations.jobs import jobs
from bridge.operations.orders import new_jobs
from bridge.operations.orders.new_jobs import NewJob
from tests.e2e.conftest import Installed

pytestmark = [pytest.mark.long, pytest.mark.ruling("B1")]

TREES = 3 * TREE_STEPS
QUICK = """\
echo '{"service_result": {"decision": "approved", "summary": "done"}}'
"""


@pytest.fixture
def service(installed: Installed) -> Installed:
    installed.agent("quick", QUICK)
    installed("daemon", "start")
    return installed


def test_no_step_is_lost_when_many_trees_go_on_at_once(service: Installed) -> None:
    """A step evicted from memory is assigned again only after its timeout, and its tree waits for that."""
    roots = asyncio.run(started(service))
    service.wait_for(lambda: all(jobs.get(service.seen, root).ended_at is not None for root in roots))
    state = service.json("daemon", "status")["state"]
    assert asyncio.run(timed_out(state["temporal_address"], state["namespace"], roots)) == []


async def started(service: Installed) -> list[str]:
    """Start all trees at once, each of one job."""
    asks = [NewJob(agent="quick", action="ask", message=f"the {number}th", repo="acme/shop") for number in range(TREES)]
    return list(await asyncio.gather(*(new_jobs.start(service.seen, ask) for ask in asks)))


async def timed_out(address: str, namespace: str, roots: list[str]) -> list[tuple[str, str]]:
    """Return the trees with a step that was assigned and timed out, and the type of the timeout."""
    client = await Client.connect(address, namespace=namespace)
    return [
        (root, TimeoutType.Name(event.workflow_task_timed_out_event_attributes.timeout_type))
        for root in roots
        async for event in client.get_workflow_handle(root).fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
    ]
