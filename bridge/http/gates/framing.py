"""Unambiguous framing: a proxy before the bridge might believe the other of two length headers (ruling N8)."""

from starlette.types import Scope

from bridge.http.gates.gate import Gate, header
from bridge.http.wire.errors import InvalidHttpError


class FramingGate(Gate):
    """A gate that refuses `Content-Length` together with `Transfer-Encoding` and closes the connection."""

    def check(self, scope: Scope) -> None:
        if header(scope, b"transfer-encoding") is not None and header(scope, b"content-length") is not None:
            raise InvalidHttpError("a request has a Content-Length or a Transfer-Encoding, not both")
