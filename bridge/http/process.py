"""The bridge as a process: listens, announces its address, stops on a signal."""

import asyncio
import importlib
import os
import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from activities.host import helper_process
from activities.redaction.redact import search_apart
from activities.runs.service_process import watch_task
from activities.settings import ready
from bridge.http.app import create_app
from bridge.http.connections import Connection
from bridge.machine import tcp_callers, web_ui
from bridge.machine.address import Address, address_of, bind, choose_address
from bridge.operations.access import mcp_clients
from bridge.operations.branches import auto_merge
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

GRACE_SECONDS = 3
"""Seconds that running calls may take when the bridge stops; event streams are closed at once."""

KEEP_ALIVE_SECONDS = 30

_REDACTION = "workflows.secrets.redact"
"""A module to import at the start: compiling its patterns takes a tenth of a second, which the first call should not
wait for.
"""

_MCP = ("mcp.server.streamable_http_manager", "bridge.http.mcp.server")
"""Modules that take half a second, imported at the start where a tool was given a token for MCP (ruling S1)."""


def serve(service: Service, addr: str | None, *, allow_remote: bool, announce: Callable[[str], None]) -> None:
    """Serve in the foreground until SIGTERM or SIGINT; call `announce` with the URL once it accepts calls."""
    search_apart(helper_process.secrets)
    with bind(choose_address(service.settings.bridge, addr, allow_remote=allow_remote)) as listening:
        beside: set[asyncio.Task[None]] = set()

        def on_ready() -> None:
            say_ready(service, address_of(listening))
            chores = auto_merge.keep(service), ready.keep_beating(service.home.bridge_ready)
            beside.update(watch_task(asyncio.get_running_loop().create_task(chore)) for chore in chores)
            asyncio.get_running_loop().run_in_executor(None, _import_early, service)
            announce(f"http://{address_of(listening)}")

        with suppress(KeyboardInterrupt):  # it has stopped in order by then
            asyncio.run(configure(app_of(service), on_ready).serve([listening]))


def app_of(service: Service) -> ASGIApp:
    """Build the app with its secrets, and remove them from the environment that child processes inherit."""
    app = create_app(service, tcp_callers.agent_at, os.environ.pop(web_ui.VARIABLE, ""))
    for name in service.settings.github.secrets:
        os.environ.pop(name, None)
    return app


def configure(app: ASGIApp, on_ready: Callable[[], None]) -> uvicorn.Server:
    """Configure a server that trusts no proxy, hides its version, and reports when it is ready."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config, on_ready)


def _import_early(service: Service) -> None:
    """Import what the first calls would wait for."""
    importlib.import_module(_REDACTION)
    with suppress(ServiceError):  # a store that can't be reached is reported by the calls that need it
        for name in _MCP if mcp_clients.every(service) else ():
            importlib.import_module(name)


def say_ready(service: Service, address: Address) -> None:
    """Write the file by which the daemon sees that the bridge listens."""
    ready.say(service.home.bridge_ready, service.reading.in_use(), str(address))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()
