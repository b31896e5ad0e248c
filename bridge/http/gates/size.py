"""Size limits of request bodies, enforced while reading (spec: limits), and checks of their framing (ruling N8)."""

import re

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bridge.http.gates.gate import HeadGate, header
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import InvalidHttpError, TooLargeError
from bridge.http.wire.refusals import refuse
from bridge.http.wire.webhook import LARGEST, is_signed

GENERAL = 1024 * 1024
PIPELINE_RUN = 64 * 1024
_PIPELINE_RUN = re.compile(r"/v1/pipelines/[^/]*/run")


class SizeGate:
    """A gate that reads the body up to its limit and passes it on whole."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        limit = limit_of(scope)
        body = None if announced_size(scope) > limit else await read_body(scope, receive, limit)
        if body is None:
            return await refuse(scope, receive, send, TooLargeError("request body too large"))
        return await self.app(scope, replay(body, receive), send)


def limit_of(scope: Scope) -> int:
    """Return the size limit of the body in bytes."""
    if is_signed(scope):
        return LARGEST
    return PIPELINE_RUN if _PIPELINE_RUN.fullmatch(scope["path"]) else GENERAL


def announced_size(scope: Scope) -> int:
    """Return the value of the Content-Length header; 0 if it is missing."""
    text = header(scope, b"content-length") or "0"
    return int(text) if re.fullmatch("[0-9]{1,20}", text) else 0


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """Return the whole body, or None if it is too large. Raise if the client disconnects before its end."""
    body, call = bytearray(), call_of(scope)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        call.bytes_in = len(body)
        if len(body) > limit:
            return None
        if not message.get("more_body"):
            return bytes(body)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields the body once, then the messages that follow it, such as a disconnect."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


class FramingGate(HeadGate):
    """A gate that refuses `Content-Length` together with `Transfer-Encoding` and closes the connection.

    A proxy in front of the bridge might use the other header, and so see another body.
    """

    async def check(self, scope: Scope) -> None:
        if header(scope, b"transfer-encoding") is not None and header(scope, b"content-length") is not None:
            raise InvalidHttpError("a request has a Content-Length or a Transfer-Encoding, not both")
