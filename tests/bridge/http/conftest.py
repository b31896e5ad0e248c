"""The bridge over a test's own home: called in this process, or over real connections."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.settings.home import Home
from bridge.http.app import create_app
from bridge.operations.service import Service
from tests.bridge.conftest import Live, bearer
from workflows.model.workers import Worker

BASE = "http://127.0.0.1:8791"
PLENTY = "[bridge]\nrequests_per_minute = 1000000\n"
NO_TEMPORAL = "[temporal]\nport = 1\n"
"""A port on which nobody listens."""
Document = dict[str, Any]
"""The OpenAPI document."""


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    """Create a service without Temporal, and with limits that no test meets by accident."""
    home.config.write_text(PLENTY + NO_TEMPORAL)
    made = Service(home)
    yield made
    made.store.dispose()


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Write the OpenAPI document, once: it takes half a second, and no home changes it."""
    made = Service(Home(tmp_path_factory.mktemp("document") / "home").ensure())
    document = create_app(made).openapi()
    made.store.dispose()
    return document


@pytest.fixture
def temporal(client: Client) -> str:
    """Return the address of a real server."""
    return client.service_client.config.target_host


@pytest.fixture
def with_temporal(home: Home, temporal: str) -> Iterator[Service]:
    """Create a service that can start work, without a worker."""
    home.config.write_text(f'{PLENTY}[temporal]\naddress = "{temporal}"\nnamespace = "default"\n')
    made = Service(home)
    scout(made)
    yield made
    made.store.dispose()


def scout(service: Service) -> None:
    """Register an agent that may be asked about acme/shop."""
    from activities.store.registry import agent_rows
    from tests.bridge import seeds

    seeds.repo(service)
    worker = Worker(name="scout", runtime="shell", command=("cat",), capabilities=("ask",))
    agent_rows.add(service.store, worker, ("acme/shop",))


def caller(service: Service, **headers: str) -> httpx.AsyncClient:
    """Return a client that calls in this process, by default with the token."""
    transport = httpx.ASGITransport(create_app(service), client=("10.0.0.9", 999))
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers=bearer(service) | headers)


@pytest_asyncio.fixture
async def call(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(service) as client:
        yield client


@pytest.fixture
def live(service: Service, listening: Callable[[Service], Live]) -> Live:
    return listening(service)
