"""A bridge that accepts real connections."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace

import httpx
import pytest
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError

from bridge.http.app import create_app
from bridge.http.process import configure
from bridge.machine.address import Address, address_of, bind
from bridge.operations.orders import resume
from bridge.operations.service import Service
from tests.waiting import PATIENCE
from workflows.model.orders import ResumeOrder


def bearer(service: Service) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.home.bridge_token.read_text()}"}


@dataclass(frozen=True)
class Live:
    """A listening bridge."""

    service: Service
    address: Address

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url,
            headers=bearer(self.service),
            timeout=PATIENCE,
        )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[ResumeOrder]:
    """Reach trees whose orders no worker takes. Return the orders that Temporal keeps."""
    orders = list[ResumeOrder]()

    async def execute_update(*_: object, **__: object) -> str:
        raise WorkflowUpdateRPCTimeoutOrCancelledError

    async def signal(_: str, order: ResumeOrder, **__: object) -> None:
        orders.append(order)

    async def client(_: Service) -> SimpleNamespace:
        tree = SimpleNamespace(execute_update=execute_update, signal=signal)
        return SimpleNamespace(get_workflow_handle=lambda _: tree)

    monkeypatch.setattr(resume, "client_of", client)
    return orders


@pytest.fixture
def listening() -> Iterator[Callable[[Service], Live]]:
    """Return a function that starts a bridge until the end of the test."""
    ends: list[Callable[[], None]] = []

    def listen(service: Service) -> Live:
        socket = bind(Address("127.0.0.1", 0))
        up: Future[None] = Future()
        server = configure(create_app(service), lambda: up.set_result(None))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([socket])), daemon=True)
        thread.start()

        def end() -> None:
            server.should_exit = True
            thread.join(20)

        ends.append(end)
        up.result(PATIENCE)
        return Live(service, address_of(socket))

    yield listen
    for end in ends:
        end()
