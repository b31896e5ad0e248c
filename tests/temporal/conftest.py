"""One real Temporal server for the whole ring; every history it has made is replayed."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client

from tests.temporal.server import histories, replayer, serve


@pytest_asyncio.fixture(scope="session")
async def client() -> AsyncIterator[Client]:
    async with serve() as connected:
        yield connected


@pytest_asyncio.fixture
async def queue(request: pytest.FixtureRequest, client: Client) -> AsyncIterator[str]:
    """A task queue of the test's own. Whatever was done on it, a worker that knows nothing can take over."""
    name = f"{request.node.name[:60]}-{uuid4().hex[:8]}"
    yield name
    results = await replayer(client.data_converter).replay_workflows(
        histories(client, name), raise_on_replay_failure=False
    )
    assert not results.replay_failures, results.replay_failures
