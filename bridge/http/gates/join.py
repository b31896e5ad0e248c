"""Authentication of a new host by its invitation (ruling Q1). It has neither a token nor the seal key yet."""

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.http.gates.auth import address
from bridge.http.gates.gate import header
from bridge.http.gates.rate import Rate
from bridge.http.wire.call import call_of
from bridge.http.wire.refusals import refuse
from bridge.http.wire.thread_pools import for_host
from bridge.operations.home import joining
from bridge.operations.service import Service
from workflows.model.errors import ServiceError


class JoinGate:
    """A gate that answers a joining host. The answer is encrypted for the holder of the invitation."""

    def __init__(self, app: ASGIApp, service: Service, strangers: Rate) -> None:
        self.app, self._service, self._strangers = app, service, strangers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != joining.PATH or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        shown, caller = header(scope, joining.HEADER.encode()) or "", f"address {address(scope)}"
        try:
            self._strangers.count(caller)
            answer = await for_host(joining.answer, self._service, shown)
        except ServiceError as refusal:
            return await refuse(scope, receive, send, refusal)
        call_of(scope).caller = call_of(scope).by = "invited host"
        return await Response(answer, media_type="application/octet-stream")(scope, receive, send)
