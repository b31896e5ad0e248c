"""The gate that answers `/mcp`. It is the innermost one: token, host, origin, rate and size are checked before it."""

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.http.gates.gate import MCP
from bridge.operations.service import Service

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

ROUTE = Route(MCP, PlainTextResponse, methods=["POST"])
"""The path's name in the audit; the gate answers before any route."""


class McpGate:
    """A gate that answers MCP messages, and passes all other calls on to the routes, which its tools call too."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self._service = app, service
        self._serving: asyncio.Task[None] | None = None
        self._manager: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != MCP:
            return await self.app(scope, receive, send)
        if self._serving is None or self._serving.done():
            started = asyncio.Event()
            self._serving = asyncio.get_running_loop().create_task(self._serve(started))
            await started.wait()
        return await self._manager.handle_request(scope, receive, send)

    async def _serve(self, started: asyncio.Event) -> None:
        """Keep the SDK's session manager running. It is imported here: few bridges serve MCP, and it takes long."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from bridge.http.mcp.server import mcp_server

        server = mcp_server(self.app, self._service)
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        async with self._manager.run():
            started.set()
            await asyncio.Event().wait()
