"""Routes that accept exactly what they declare: strict JSON, known query parameters, nothing else (ruling J3)."""

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from bridge.http.wire import authorization
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import NotJsonError, unknown
from bridge.http.wire.strict_json import decode
from bridge.http.wire.thread_pools import read
from bridge.machine.token_scopes import TokenScope
from workflows.model.errors import UsageError

LARGE = 64 * 1024
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;\s*charset=\"?utf-8\"?\s*)?", re.IGNORECASE)


class _StrictRequest(Request):
    """A request with an already decoded body, which the framework uses."""

    decoded: Any = None

    async def json(self) -> Any:
        return self.decoded


class StrictRoute(APIRoute):
    """A route that checks scope, caller, query and body before the framework parses the request."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = tuple(field.alias for field in self.dependant.query_params)
        takes_body = self.body_field is not None
        needed = authorization.declared_scope(self.openapi_extra)
        order = f"{' '.join(sorted(self.methods or ()))} {self.path_format}"

        async def strict(request: Request) -> Response:
            if needed not in (None, TokenScope.READ):
                authorization.check_scope(call_of(request.scope), needed)
                state = request.app.state
                await authorization.refuse_agents(state.service, state.agent_at, request.scope, order)
            if request.scope["query_string"]:
                _check_query(request, known)
            if any("\0" in value for value in request.path_params.values()):
                raise UsageError("the path holds U+0000")
            if request.method == "POST":
                request = await _decode_body(request, takes_body)
            return await handle(request)

        return strict


def _check_query(request: Request, known: tuple[str, ...]) -> None:
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    for name, value in given:
        if name not in known:
            raise UsageError(unknown(name, known))
        if names.count(name) > 1:
            raise UsageError(f"the query parameter {name} occurs twice")
        if "\0" in value:
            raise UsageError(f"the query parameter {name} holds U+0000")


async def _decode_body(request: Request, takes_body: bool) -> Request:
    """Decode the body; a large one in a thread, so that the event loop is not blocked."""
    body = await request.body()
    strict = _StrictRequest(request.scope, request.receive)
    strict._body = body  # Starlette's cache of a body that was read
    if body:
        _check_content_type(request)
        strict.decoded = await read(decode, body) if len(body) > LARGE else decode(body)
        if not isinstance(strict.decoded, dict):
            raise UsageError("the body must be a JSON object")
        if not takes_body and strict.decoded != {}:
            raise UsageError("this request takes no body, or an empty JSON object")
    return strict


def _check_content_type(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    if not _JSON.fullmatch(content_type):
        words = repr(content_type[:100]) if content_type else "missing"
        raise NotJsonError(f"the body must be application/json in UTF-8; Content-Type is {words}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotJsonError("the body must not be compressed")
