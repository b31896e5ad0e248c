"""Error responses, all with the same form of body (ruling J1)."""

import asyncio
import json
from contextlib import suppress

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bridge.http.wire.call import call_of
from bridge.http.wire.errors import HttpError, as_ours
from bridge.http.wire.projections import without_paths
from bridge.http.wire.schemas import Error
from bridge.http.wire.thread_pools import read
from workflows.model.errors import ServiceError

LINGER_SECONDS = 1.0


def sentence_of(error: ServiceError) -> str:
    """Return an error with what to type next, in one sentence."""
    return f"{error.message}; try: {error.hint}" if error.hint else error.message


def body_of(error: ServiceError, request_id: str) -> bytes:
    """Return the body of an error response."""
    body = Error(error=sentence_of(error), code=error.code, request_id=request_id)
    return json.dumps(body.model_dump(), ensure_ascii=False).encode()


def answer_to(scope: Scope, raised: Exception) -> Response:
    """Return the response to an exception, and note its code for the audit."""
    call, error = call_of(scope), as_ours(raised, scope)
    call.code = error.code
    headers = error.headers if isinstance(error, HttpError) else None
    return Response(body_of(error, call.request_id), error.status, headers, "application/json")


async def refuse(scope: Scope, receive: Receive, send: Send, error: ServiceError) -> None:
    """Send an error before the request's body was read, then read and discard the body for a moment.

    If the connection were closed while the client still sends, it would be reset and the client would not get the
    error.
    """
    response = answer_to(scope, error)
    if not _sends_a_body(scope):
        return await response(scope, receive, send)
    response.headers["Connection"] = "close"
    start = {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    await _let_pass(scope, receive)
    return await send({"type": "http.response.body", "body": b""})


def install(app: FastAPI) -> None:
    """Install the handler for all exceptions."""
    for kind in (ServiceError, RequestValidationError, HTTPException, DBAPIError):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    """Return the response to an exception. Remove this machine's paths from the suggested commands."""
    answer = answer_to(request.scope, error)
    if not isinstance(error, ServiceError) or "/" not in error.hint + error.message:
        return answer
    shown = await read(without_paths, request.app.state.service, bytes(answer.body).decode())
    headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-length"}
    return Response(shown, answer.status_code, headers, "application/json")


def _sends_a_body(scope: Scope) -> bool:
    names = dict(scope["headers"])
    return names.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in names


async def _let_pass(scope: Scope, receive: Receive) -> None:
    """Read and discard the body. A client that waits for `100 Continue` sends no body until asked, and is not asked."""
    if any(name == b"expect" for name, _ in scope["headers"]):
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
