"""Calls of the bridge's own routes by a tool, with the caller, the token and the audit line of the MCP call.

So a tool has no right, no check and no error of its own: scope, known agents, idempotency and validation are the
route's (ruling S2).
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import ASGIApp, Message, Scope

from bridge.http.wire.call import call_of
from bridge.operations.service import Service

CHANNEL = "mcp"
"""The channel of orders that come by a tool."""

_PASSED_ON = (b"authorization", b"host")


class RouteRefusal(Exception):  # noqa: N818
    """A route's refusal, in the sentence that it answered."""


@dataclass(frozen=True)
class RouteCalls:
    """The routes of this bridge, called on behalf of one MCP call."""

    service: Service
    app: ASGIApp
    scope: Scope
    client: str
    """The calling program, in its own words."""

    async def get(self, path: str, /, **query: Any) -> Any:
        """Return the answer of a route that reads."""
        return await self._call("GET", path, urlencode({name: value for name, value in query.items() if value}))

    async def post(self, path: str, body: Mapping[str, Any], request_id: str | None = None) -> Any:
        """Return the answer of a route that acts, which counts as a call; calls with one request id act once."""
        self.scope["app"].state.rate.count(call_of(self.scope).caller)
        content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        return await self._call("POST", path, "", content, request_id)

    async def _call(self, method: str, path: str, query: str, body: bytes = b"", request_id: str | None = None) -> Any:
        headers = [(name, value) for name, value in self.scope["headers"] if name in _PASSED_ON]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if request_id:
            headers.append((b"idempotency-key", request_id.encode("ascii", "replace")))
        scope = {**self.scope, "method": method, "path": path, "raw_path": quote(path).encode()}
        scope |= {"query_string": query.encode(), "headers": headers}
        for left_by_the_gate in ("route", "endpoint", "path_params"):
            scope.pop(left_by_the_gate, None)
        call = call_of(scope)
        call.channel, call.program = CHANNEL, self.client
        status, answer = await self._answer(scope, body)
        document = json.loads(answer)
        if status >= 400:
            raise RouteRefusal(document["error"])
        return document

    async def _answer(self, scope: Scope, body: bytes) -> tuple[int, bytes]:
        status, pieces, rest = 0, list[bytes](), [body]

        async def receive() -> Message:
            if not rest:
                await asyncio.Event().wait()  # a route that watches for the end of the connection
            return {"type": "http.request", "body": rest.pop(), "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                pieces.append(message.get("body", b""))

        await self.app(scope, receive, send)
        return status, b"".join(pieces)
