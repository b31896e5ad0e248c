"""Who calls: the holder of the token, or nobody (rulings J1, J10). Nothing of a body is read before that is known."""

from hashlib import sha256

from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from bridge.http.call import call_of
from bridge.http.errors import answer
from bridge.http.gates.gate import Gate, header, is_probe
from bridge.http.gates.rate import Rate
from bridge.http.token import Token


class AuthGate(Gate):
    """Lets the token pass. Guessing is counted per address."""

    def __init__(self, app: ASGIApp, token: Token, rate: Rate) -> None:
        super().__init__(app)
        self._token, self._rate = token, rate

    def check(self, scope: Scope) -> Response | None:
        if is_probe(scope):
            return None
        shown = _bearer(header(scope, b"authorization"))
        if shown is not None and self._token.accepts(shown):
            call_of(scope).caller = f"token {sha256(shown).hexdigest()}"
            return None
        return self._rate.refusal(scope, f"address {address(scope)}") or answer(
            scope,
            401,
            "unauthorized",
            "the token is wrong" if shown is not None else "a token is needed: Authorization: Bearer TOKEN",
            {"WWW-Authenticate": "Bearer"},
        )


def address(scope: Scope) -> str:
    """Where the connection comes from."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _bearer(value: str | None) -> bytes | None:
    scheme, _, shown = (value or "").partition(" ")
    return shown.strip(" ").encode("latin-1") if scheme.lower() == "bearer" and shown.strip(" ") else None
