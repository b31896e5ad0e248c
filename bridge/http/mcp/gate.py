"""The gate that answers `/mcp`. It is the innermost one: token, host, origin, rate and size are checked before it."""

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.http.gates.gate import MCP
from bridge.http.wire.errors import MethodNotAllowedError
from bridge.http.wire.refusals import refuse
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
        self._manager: asyncio.Future[StreamableHTTPSessionManager]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != MCP:
            return await self.app(scope, receive, send)
        if scope["method"] != "POST":  # the SDK would hold a stream open, on which nothing is ever sent
            message = f"{scope['method']} is not allowed here; the Allow header lists what is"
            return await refuse(scope, receive, send, MethodNotAllowedError(message, "POST"))
        if self._serving is None or self._serving.done():
            loop = asyncio.get_running_loop()
            self._manager = loop.create_future()
            self._serving = loop.create_task(self._serve(self._manager))
        manager = await asyncio.shield(self._manager)
        return await manager.handle_request(scope, receive, send)

    async def _serve(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        """Keep the SDK's session manager running, or tell those who wait for it why it can't."""
        try:
            manager = await asyncio.to_thread(self._build)
            async with manager.run():
                ready.set_result(manager)
                await asyncio.Event().wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)

    def _build(self) -> "StreamableHTTPSessionManager":
        """Build the server. The SDK is imported here: few bridges serve MCP, and it takes half a second."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from bridge.http.mcp.server import mcp_server

        return StreamableHTTPSessionManager(mcp_server(self.app, self._service), json_response=True, stateless=True)
