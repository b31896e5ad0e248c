"""Authentication of GitHub's deliveries by their signature (ruling L7). Deliveries without a valid signature are
refused here.

Signed deliveries don't count against the operator's rate limit. Few bodies are read at once, so that strangers can't
fill the memory.
"""

import asyncio
import hmac
import re
from hashlib import sha256

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.http.gates.gate import header
from bridge.http.gates.rate import Rate
from bridge.http.gates.size import announced_size, read_body, replay
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import RateLimitedError, TooLargeError, UnauthorizedError
from bridge.http.wire.refusals import refuse
from bridge.http.wire.webhook import CALLER, LARGEST, is_delivery
from workflows.model.errors import NotFoundError, ServiceError

SIGNATURE = "X-Hub-Signature-256"
AT_ONCE = 8
"""Bodies that are read concurrently, from all senders together."""

SECONDS = 10.0
"""The timeout of a body; GitHub itself waits no longer for an answer."""

SIGNED, STRANGERS = 600, 60
"""Limits a minute: of accepted deliveries, and of calls without a valid signature that are told the reason."""

_SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")


class WebhookGate:
    """A gate that marks signed deliveries for the gates behind it. Without a secret the endpoint does not exist."""

    def __init__(self, app: ASGIApp, secret: str, rate: Rate, strangers: Rate) -> None:
        self.app, self._secret, self._rate, self._strangers = app, secret.encode(), rate, strangers
        self._reading = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_delivery(scope):
            return await self.app(scope, receive, send)
        try:
            body = await self._signed_body(scope, receive)
        except (ServiceError, ClientDisconnect) as refusal:
            limit = self._count(scope)
            if isinstance(refusal, ClientDisconnect):
                raise
            return await refuse(scope, receive, send, limit or refusal)
        try:
            self._rate.count(CALLER)
        except RateLimitedError as limit:
            return await refuse(scope, receive, send, limit)
        call_of(scope).caller = call_of(scope).by = CALLER
        return await self.app(scope, replay(body, receive), send)

    def _count(self, scope: Scope) -> RateLimitedError | None:
        try:
            self._strangers.count("strangers")
        except RateLimitedError as limit:
            return limit
        return None

    async def _signed_body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body if its signature is valid. Check the signature's form and the size before reading."""
        if not self._secret:
            raise NotFoundError(f"there is nothing at {scope['path']}: no webhook is set up", "service doctor")
        shown = (header(scope, SIGNATURE.lower().encode()) or "").encode("latin-1")
        if not _SIGNATURE.fullmatch(shown):
            raise UnauthorizedError(f"a signature is needed: {SIGNATURE}", SIGNATURE)
        body = None if announced_size(scope) > LARGEST else await self._read(scope, receive)
        if body is None:
            raise TooLargeError("the delivery is too large")
        right = b"sha256=" + hmac.new(self._secret, body, sha256).hexdigest().encode()
        if not hmac.compare_digest(right, shown):
            raise UnauthorizedError("the signature is wrong", SIGNATURE)
        return body

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        if self._reading >= AT_ONCE:
            raise RateLimitedError("too many deliveries at once; try again in 1 s", "1")
        self._reading += 1
        try:
            async with asyncio.timeout(SECONDS):
                return await read_body(scope, receive, LARGEST)
        except TimeoutError:
            raise ClientDisconnect from None
        finally:
            self._reading -= 1
