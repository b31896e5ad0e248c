"""The bridge over a home of the test's own: called in this process, or by real connections."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from activities.settings.home import Home
from activities.store.database import open_store
from bridge.http.app import create_app
from bridge.http.process import configured
from bridge.machine.address import Address, bind, bound
from bridge.operations.service import Service
from tests.temporal.server import serve
from workflows.model.workers import Worker

BASE = "http://127.0.0.1:8791"
PLENTY = "[bridge]\nrequests_per_minute = 1000000\n"
NO_TEMPORAL = "[temporal]\nport = 1\n"
"""Nobody listens there."""


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of this release, to be copied: making one takes longer than most tests."""
    home = Home(tmp_path_factory.mktemp("template"))
    open_store(home).dispose()
    return home.store


@pytest.fixture
def home(home: Home, empty_store: Path) -> Home:
    """A home whose store is there."""
    shutil.copy(empty_store, home.store)
    return home


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
    from tests.bridge.http import seeds

    seeds.repo(service)
    worker = Worker(name="scout", runtime="shell", command=("cat",), capabilities=("ask",))
    agents.add(service.store, worker, ("acme/shop",))


def bearer(service: Service) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.home.bridge_token.read_text()}"}


def caller(service: Service, **headers: str) -> httpx.AsyncClient:
    """Calls in this process, with the token unless told otherwise."""
    transport = httpx.ASGITransport(create_app(service), client=("10.0.0.9", 999))
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers=bearer(service) | headers)


@pytest_asyncio.fixture
async def call(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(service) as client:
        yield client


@dataclass(frozen=True)
class Live:
    """A bridge that listens."""

    service: Service
    address: Address

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers=bearer(self.service), timeout=20)


@pytest.fixture
def listening() -> Iterator[Callable[[Service], Live]]:
    """Lets a bridge listen until the test is over."""
    ends: list[Callable[[], None]] = []

    def listen(service: Service) -> Live:
        socket = bind(Address("127.0.0.1", 0))
        up: Future[None] = Future()
        server = configured(create_app(service), lambda: up.set_result(None))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([socket])), daemon=True)
        thread.start()

        def end() -> None:
            server.should_exit = True
            thread.join(20)

        ends.append(end)
        up.result(20)
        return Live(service, bound(socket))

    yield listen
    for end in ends:
        end()


@pytest.fixture
def live(service: Service, listening: Callable[[Service], Live]) -> Live:
    return listening(service)
