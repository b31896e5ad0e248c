"""The base of gates: a gate passes a call on to the next, or answers it."""

from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.http.wire.refusals import refuse
from workflows.model.errors import ServiceError

MCP = "/mcp"
"""The path of MCP messages."""


class HeadGate:
    """A check that needs only the head of a request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self.check(scope)
            except ServiceError as refusal:
                return await refuse(scope, receive, send, refusal)
        return await self.app(scope, receive, send)

    async def check(self, scope: Scope) -> None:
        """Raise the refusal, or let the call pass."""
        raise NotImplementedError


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header's value; several of one name are joined with commas."""
    values = [value for key, value in scope["headers"] if key == name]
    return b", ".join(values).decode("latin-1") if values else None


def is_probe(scope: Scope) -> bool:
    """Return whether the call is a health probe: it needs no token and reveals nothing secret (ruling J2)."""
    return scope["method"] == "GET" and scope["path"] in ("/healthz", "/readyz")
