"""A gate: it lets a call pass to the next, or answers it."""

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.http.errors import refuse


class Gate:
    """One check that needs no more than the head of a request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self.check(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            await refuse(scope, receive, send, refusal)

    def check(self, scope: Scope) -> Response | None:
        """The refusal, or None when the call may pass."""
        raise NotImplementedError


def header(scope: Scope, name: bytes) -> str | None:
    """A header's value; several of one name are joined, as HTTP has it."""
    found = [value for key, value in scope["headers"] if key == name]
    return b", ".join(found).decode("latin-1") if found else None


def is_probe(scope: Scope) -> bool:
    """Whether somebody only looks if the bridge is alive: free, and told nothing secret (ruling J2)."""
    return scope["method"] == "GET" and scope["path"] in ("/healthz", "/readyz")
