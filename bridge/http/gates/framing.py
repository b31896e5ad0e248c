"""Where a request ends must be said once (ruling N8): a proxy before the bridge might believe the other of the two."""

from starlette.types import Scope

from bridge.http.gates.gate import Gate, header
from bridge.http.wire.errors import InvalidHttpError


class FramingGate(Gate):
    """Refuses `Content-Length` together with `Transfer-Encoding`; the connection ends with the answer."""

    def check(self, scope: Scope) -> None:
        if header(scope, b"transfer-encoding") is not None and header(scope, b"content-length") is not None:
            raise InvalidHttpError("a request has a Content-Length or a Transfer-Encoding, not both")
