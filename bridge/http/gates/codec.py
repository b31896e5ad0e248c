"""The codec endpoint: decrypts payloads for Temporal's command line and its web UI (ruling N1).

Served only if `[temporal].encrypt` is set. A program shows the bridge's token. A page of the web UI is authorised by
the browser's dashboard session. The endpoint never encrypts: otherwise everyone with read access could forge messages
of the service.
"""

from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf import json_format
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from temporalio.api.common.v1 import Payload, Payloads

from activities.sealing.payload_seals import PayloadSeals
from bridge.http.gates.gate import HeadGate, header
from bridge.http.gates.origin import is_own
from bridge.http.gates.rate import Rate
from bridge.http.gates.size import read_body
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import InvalidJsonError, TooLargeError, UnauthorizedError
from bridge.http.wire.refusals import refuse
from workflows.model.errors import NotFoundError, ServiceError
from workflows.temporal.seals import UnsealedError

FOR_PROGRAMS, FOR_PAGES = "/codec/decode", "/ui/codec/decode"
"""The codec endpoint's paths. Browsers send the dashboard's cookie only to paths below `/ui`."""

PER_MINUTE = 1200
"""Requests a minute: a page of the web UI sends one for each event it shows."""

LARGEST = 8 * 1024 * 1024


class CodecGate:
    """A gate that answers the two codec paths and passes all other calls on."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        seals: PayloadSeals,
        hosts: HeadGate,
        auth: HeadGate,
        page: str,
        url: str,
        session: Callable[[Scope], str | None],
    ) -> None:
        self.app, self._seals, self._hosts, self._auth = app, seals, hosts, auth
        self._page, self._url, self._session, self._rate = page.lower(), url, session, Rate(PER_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in (FOR_PROGRAMS, FOR_PAGES):
            return await self.app(scope, receive, send)
        origin = header(scope, b"origin") or ""
        from_page = is_own(origin, header(scope, b"host") or "", self._url)
        if origin and origin.lower() == self._page:
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"origin"]}
            send, from_page = _readable_by(origin, send), True
        try:
            answer = await self._answer(scope, receive, from_page=from_page)
        except ServiceError as refusal:
            return await refuse(scope, receive, send, refusal)
        return await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, *, from_page: bool) -> Response:
        await self._hosts.check(scope)  # the origin of an allowed page was removed above
        if from_page and scope["method"] == "OPTIONS":
            return Response(None, 204)
        if scope["method"] != "POST":
            raise NotFoundError("payloads are sent here to be decrypted, with POST")
        await self._let_in(scope, from_page=from_page)
        body = await read_body(scope, receive, LARGEST)
        if body is None:
            raise TooLargeError("request body too large")
        try:
            encrypted = json_format.Parse(body, Payloads())
        except (json_format.ParseError, ValueError, RecursionError):
            raise InvalidJsonError('the body must be `{"payloads": [...]}`') from None
        decrypted = Payloads(payloads=self._decrypt(encrypted.payloads))
        return Response(json_format.MessageToJson(decrypted), media_type="application/json")

    async def _let_in(self, scope: Scope, *, from_page: bool) -> None:
        if scope["path"] == FOR_PAGES:
            key = self._session(scope) if from_page else None
            if key is None:
                raise UnauthorizedError("open the dashboard in this browser first: service dashboard", "Bearer")
            call_of(scope).caller = f"session {key}"
        else:
            await self._auth.check(scope)
        self._rate.count(f"codec {call_of(scope).caller}")

    def _decrypt(self, payloads: Iterable[Payload]) -> Iterable[Payload]:
        """Decrypt the payloads; return those unchanged that are not encrypted, or encrypted with another key."""
        for payload in payloads:
            try:
                yield self._seals.decrypt(payload)
            except UnsealedError:
                yield payload


def _readable_by(origin: str, send: Send) -> Send:
    """Add the CORS headers that let a page of this origin read the answer."""
    allowed: dict[str, Any] = {
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": "content-type, x-namespace, authorization, caller-type",
        "access-control-max-age": "600",
        "vary": "origin",
    }

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [(name.encode(), value.encode()) for name, value in allowed.items()]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sending
