"""The bridge as a process: listens, says where, ends when told to."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from activities.settings import ready as ready_file
from bridge.http.app import create_app
from bridge.http.wire.call import Call
from bridge.http.wire.errors import InvalidHttpError
from bridge.http.wire.refusals import body_of
from bridge.machine import tcp_callers
from bridge.machine.address import Address, bind, bound, wanted
from bridge.operations.service import Service

GRACE_SECONDS = 3
"""What a call may still take when the bridge ends; those who wait for news are cut off."""

KEEP_ALIVE_SECONDS = 30

WHOLE_SECONDS = 60.0
"""A request must be there whole by then: who sends a byte a minute would keep its connection for ever, and there are
only so many."""


def serve(service: Service, addr: str | None, *, allow_remote: bool, announce: Callable[[str], None]) -> None:
    """Serve in the foreground until SIGTERM or SIGINT; `announce` hears the URL once calls are taken."""
    with bind(wanted(service.settings.bridge, addr, allow_remote=allow_remote)) as listening:

        def ready() -> None:
            say_ready(service, bound(listening))
            announce(f"http://{bound(listening)}")

        with suppress(KeyboardInterrupt):  # it has ended in order by then
            asyncio.run(configured(app_of(service), ready).serve([listening]))


def app_of(service: Service) -> ASGIApp:
    """With what it needs of the environment; the programs that are started from here may not see secrets."""
    app = create_app(service, tcp_callers.agent_at)
    for name in service.settings.github.secrets:
        os.environ.pop(name, None)
    return app


def configured(app: ASGIApp, ready: Callable[[], None]) -> uvicorn.Server:
    """A server that believes no proxy, tells no version, and says when it is ready."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config, ready)


def say_ready(service: Service, address: Address) -> None:
    """Whoever supervises the bridge reads there that it listens."""
    ready_file.say(service.home.bridge_ready, service.reading.told(), str(address))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


class _Protocol(H11Protocol):
    """Cuts off who never finishes a request; answers what is no HTTP in the shape of everything else (ruling J1)."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(WHOLE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        unfinished = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if unfinished and self._late is None:
            self._late = self.loop.call_later(WHOLE_SECONDS, self.transport.abort)
        elif not unfinished:
            self._is_in_time()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_in_time()

    def _is_in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def send_400_response(self, msg: str) -> None:
        body = body_of(InvalidHttpError(msg), Call().request_id)
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        status = HTTPStatus(InvalidHttpError.status)
        for event in (
            h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
