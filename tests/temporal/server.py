"""A real Temporal server for tests, and what it remembers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer

from bridge.daemon.server import TUNING, find_program
from workflows.temporal import search
from workflows.temporal.runner import WORKFLOWS, guarded

KEYS = (
    *TUNING,
    "frontend.WorkflowTimeSkippingEnabled=true",
    # A production server slows runs down that follow one another quickly.
    'history.workflowIdReuseMinimalInterval="1ms"',
    "system.forceSearchAttributesCacheRefreshOnRead=true",
)


@asynccontextmanager
async def serve() -> AsyncIterator[Client]:
    """In memory, on a port of its own, able to skip time."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_program()),
        data_converter=pydantic_data_converter,
        search_attributes=[*search.KEYWORDS, *search.NUMBERS],
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
    return Replayer(workflows=WORKFLOWS, workflow_runner=guarded(), data_converter=pydantic_data_converter)
