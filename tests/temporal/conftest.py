"""A task queue for each test; the longest histories of each file are replayed."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.settings.home import Home
from bridge.operations.orders import resume, trees
from tests.temporal.pipeline_stage import PipelineHost, pipeline_host
from tests.temporal.server import histories, replayer
from tests.waiting import PATIENCE

REPLAYED = 4
"""Histories replayed for each file."""


@pytest_asyncio.fixture(scope="module")
async def queues(client: Client) -> AsyncIterator[list[str]]:
    """Collect the task queues of a file's tests, and replay their histories: any worker must be able to take them
    over.
    """
    names: list[str] = []
    yield names
    replays, left = replayer(client.data_converter), REPLAYED
    async for history in histories(client, names):
        result = await replays.replay_workflow(history, raise_on_replay_failure=False)
        assert result.replay_failure is None, result.replay_failure
        if not (left := left - 1):
            break


@pytest.fixture(autouse=True)
def orders_wait_for_a_busy_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let orders wait for the tree's verdict as long as tests do; by default they are soon left to Temporal."""
    monkeypatch.setattr(resume, "PATIENCE", timedelta(seconds=PATIENCE))
    monkeypatch.setattr(trees, "RPC_TIMEOUT", timedelta(seconds=PATIENCE))


@pytest.fixture
def queue(request: pytest.FixtureRequest, queues: list[str]) -> str:
    """Return a task queue of the test's own."""
    queues.append(f"{request.node.name[:60]}-{uuid4().hex[:8]}")
    return queues[-1]


@pytest_asyncio.fixture
async def host(
    client: Client, queue: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PipelineHost]:
    """Play a host whose stages wait for files in `$STAGE`."""
    monkeypatch.setenv("STAGE", str(tmp_path / "stage"))
    made = pipeline_host(client, queue, home, tmp_path)
    yield made
    made.touch("go")  # releases stages that still wait
