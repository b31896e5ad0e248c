"""The bridge over a home of the test's own: called in this process, or by real connections."""

from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import pytest
import pytest_asyncio

from activities.settings.home import Home
from bridge.http.app import create_app
from bridge.operations.service import Service
from tests.bridge.conftest import Live, bearer
from tests.temporal.server import serve
from workflows.model.workers import Worker

BASE = "http://127.0.0.1:8791"
PLENTY = "[bridge]\nrequests_per_minute = 1000000\n"
NO_TEMPORAL = "[temporal]\nport = 1\n"
"""Nobody listens there."""


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    """No Temporal, and no limit that a test would meet by accident."""
    home.config.write_text(PLENTY + NO_TEMPORAL)
    made = Service(home)
    yield made
    made.store.dispose()  # the framework remembers routes for ever, and they their service


@pytest_asyncio.fixture(scope="session")
async def temporal() -> AsyncIterator[str]:
    """The address of a real server."""
    async with serve() as client:
        yield client.service_client.config.target_host


@pytest.fixture
def with_temporal(home: Home, temporal: str) -> Iterator[Service]:
    """A service that can start work. Nobody does it."""
    home.config.write_text(f'{PLENTY}[temporal]\naddress = "{temporal}"\nnamespace = "default"\n')
    made = Service(home)
    scout(made)
    yield made
    made.store.dispose()


def scout(service: Service) -> None:
    """An agent that may be asked about acme/shop."""
    from activities.store import agents
    from tests.bridge import seeds

    seeds.repo(service)
    worker = Worker(name="scout", runtime="shell", command=("cat",), capabilities=("ask",))
    agents.add(service.store, worker, ("acme/shop",))


def caller(service: Service, **headers: str) -> httpx.AsyncClient:
    """Calls in this process, with the token unless told otherwise."""
    transport = httpx.ASGITransport(create_app(service), client=("10.0.0.9", 999))
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers=bearer(service) | headers)


@pytest_asyncio.fixture
async def call(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(service) as client:
        yield client


@pytest.fixture
def live(service: Service, listening: Callable[[Service], Live]) -> Live:
    return listening(service)
