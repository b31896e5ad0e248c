"""Authentication of callers by token (rulings J1, J10, N5). No body is read before a token is accepted."""

import asyncio
from hashlib import sha256

from starlette.types import ASGIApp, Scope

from bridge.http.gates.gate import HeadGate, header, is_probe
from bridge.http.gates.rate import Rate
from bridge.http.wire.call import Call, call_of
from bridge.http.wire.errors import UnauthorizedError
from bridge.http.wire.webhook import is_signed
from bridge.machine.token import Token
from bridge.machine.token_scopes import TokenScope
from bridge.machine.tokens_file import NamedToken
from bridge.operations.access.tokens import Tokens


class AuthGate(HeadGate):
    """A gate that accepts known tokens and notes their name and scope. Wrong tokens are rate-limited per address."""

    def __init__(self, app: ASGIApp, token: Token, named: Tokens, rate: Rate) -> None:
        super().__init__(app)
        self._token, self._named, self._rate = token, named, rate

    async def check(self, scope: Scope) -> None:
        if is_probe(scope) or is_signed(scope):
            return
        shown = _bearer(header(scope, b"authorization"))
        if shown is not None and await self._identify(call_of(scope), shown):
            call_of(scope).opens = lambda: self._opens(shown)
            return
        self._rate.count(f"address {address(scope)}")
        wrong, missing = "the token is wrong", "a token is needed: Authorization: Bearer TOKEN"
        raise UnauthorizedError(missing if shown is None else wrong, "Bearer")

    async def _opens(self, shown: bytes) -> bool:
        return self._token.accepts(shown) or await self._find(shown) is not None

    async def _find(self, shown: bytes) -> NamedToken | None:
        """Look a token up in a thread: the store may be slow, and other calls must not wait for it."""
        return await asyncio.to_thread(self._named.find, shown)

    async def _identify(self, call: Call, shown: bytes) -> bool:
        if self._token.accepts(shown):
            call.scope, call.by = TokenScope.ACT, "the operator's token"
        elif named := await self._find(shown):
            call.token, call.scope, call.by = named.name, named.scope, f"token {named.name}"
        else:
            return False
        call.caller = f"token {sha256(shown).hexdigest()}"
        return True


def address(scope: Scope) -> str:
    """Return the address of the client."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _bearer(value: str | None) -> bytes | None:
    scheme, _, shown = (value or "").partition(" ")
    return shown.strip(" ").encode("latin-1") if scheme.lower() == "bearer" and shown.strip(" ") else None
