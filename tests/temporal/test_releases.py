"""Releases of a fleet as versions of a Worker Deployment: trees of a release before go on at once (ruling Q8)."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities import worker_releases
from activities.host.context import Context
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.database import open_store
from activities.store.registry import host_rows
from activities.worker_releases import NoDeploymentsError
from tests.temporal.host import Handle, Host, ended, serving, start
from tests.temporal.people import asking, order, say, waits
from tests.waiting import soon

pytestmark = pytest.mark.ruling("Q8")

Fleet = Callable[[str], Context]


@pytest.fixture
def fleet(bare_home: Home, queue: str, tmp_path: Path) -> Fleet:
    """Return a function that makes a host of a fleet, whose database stands for PostgreSQL."""
    url = f"sqlite:///{tmp_path}/fleet.db"

    def host(name: str) -> Context:
        worker, temporal = {"host": name}, {"task_queue": queue}
        settings = Settings.model_validate({"worker": worker, "temporal": temporal, "store": {"url": url}})
        return Context(bare_home, settings, open_store(bare_home, url))

    return host


@asynccontextmanager
async def working(
    client: Client, queue: str, script: Host, host: Context, release: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Run the workers of a host on a release, as at their start."""
    monkeypatch.setattr(host_rows, "release", lambda: release)
    host_rows.see(host.store, host.host, slots=1, started_at=1.0)
    config = await worker_releases.config(client, host.settings)
    assert config is not None
    async with serving(client, queue, script, deployment_config=config):
        assert await worker_releases.make_current(client, host)
        yield
    host_rows.stop(host.store, host.host, started_at=1.0)


async def current(client: Client, host: Context) -> str:
    return (await worker_releases.deployment(client, host.settings)).current


async def paused(client: Client, queue: str, script: Host) -> Handle:
    tree = await start(client, queue)
    await waits(script)
    return tree


async def test_a_tree_that_waits_goes_on_with_the_next_release(
    client: Client, queue: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began on a release without deployments, and passes a pause, a restart and an upgrade."""
    script, one = Host(asking({}, "root")), fleet("one")
    async with serving(client, queue, script):
        tree = await paused(client, queue, script)
    async with working(client, queue, script, one, "0.2.0", monkeypatch):
        assert await current(client, one) == "0.2.0"
    async with working(client, queue, script, one, "0.10.0", monkeypatch):
        await say(tree, order(tree.id, "answer", "red"))
        assert (await soon(ended(tree))).decision == "approved"


async def test_an_older_release_takes_no_steps_until_the_newer_one_has_no_host(
    client: Client, queue: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, one, two = Host(asking({}, "root")), fleet("one"), fleet("two")
    async with working(client, queue, script, one, "0.3.0", monkeypatch):
        tree = await paused(client, queue, script)
        monkeypatch.setattr(host_rows, "release", lambda: "0.2.0")
        assert await worker_releases.make_current(client, two)
        assert await current(client, two) == "0.3.0"
    async with working(client, queue, script, two, "0.2.0", monkeypatch):
        assert await current(client, two) == "0.2.0"
        await say(tree, order(tree.id, "answer", "red"))
        assert (await soon(ended(tree))).decision == "approved"


async def test_a_single_host_has_no_deployment(client: Client, queue: str) -> None:
    assert await worker_releases.config(client, Settings.model_validate({"temporal": {"task_queue": queue}})) is None


async def test_a_server_without_deployments_is_worked_with_as_before(
    client: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(*_: object, **__: object) -> DescribeWorkerDeploymentResponse:
        raise RPCError("unknown method DescribeWorkerDeployment", RPCStatusCode.UNIMPLEMENTED, b"")

    monkeypatch.setattr(client.workflow_service, "describe_worker_deployment", unknown)
    assert await worker_releases.config(client, fleet("one").settings) is None
    with pytest.raises(NoDeploymentsError, match="unknown method"):
        await worker_releases.deployment(client, fleet("one").settings)
