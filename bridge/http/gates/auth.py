"""Who calls: the holder of the token, or nobody (rulings J1, J10). Nothing of a body is read before that is known."""

from hashlib import sha256

from starlette.types import ASGIApp, Scope

from bridge.http.gates.gate import Gate, header, is_probe
from bridge.http.gates.rate import Rate
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import UnauthorizedError
from bridge.http.wire.webhook import is_signed
from bridge.machine.token import Token


class AuthGate(Gate):
    """Lets the token pass. Guessing is counted per address."""

    def __init__(self, app: ASGIApp, token: Token, rate: Rate) -> None:
        super().__init__(app)
        self._token, self._rate = token, rate

    def check(self, scope: Scope) -> None:
        if is_probe(scope) or is_signed(scope):
            return
        shown = _bearer(header(scope, b"authorization"))
        if shown is not None and self._token.accepts(shown):
            call_of(scope).caller = f"token {sha256(shown).hexdigest()}"
            return
        self._rate.count(f"address {address(scope)}")
        wrong, missing = "the token is wrong", "a token is needed: Authorization: Bearer TOKEN"
        raise UnauthorizedError(missing if shown is None else wrong, "Bearer")


def address(scope: Scope) -> str:
    """Where the connection comes from."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _bearer(value: str | None) -> bytes | None:
    scheme, _, shown = (value or "").partition(" ")
    return shown.strip(" ").encode("latin-1") if scheme.lower() == "bearer" and shown.strip(" ") else None
