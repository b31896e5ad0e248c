"""One shape for everything that goes wrong (ruling J1): `{"error", "code", "request_id"}`."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bridge.http.call import call_of
from bridge.http.wording import sentence
from workflows.errors import ServiceError

log = logging.getLogger(__name__)

CODES = {404: "not_found", 405: "method_not_allowed"}
LINGER_SECONDS = 1.0


class HttpError(ServiceError):
    """A refusal that only HTTP knows."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.refused_with, self.slug, self.headers = status, code, dict(headers or {})


def answer(scope: Scope, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as it is sent, noted for the audit."""
    call = call_of(scope)
    call.code = code
    body = {"error": message, "code": code, "request_id": call.request_id}
    return Response(json.dumps(body, ensure_ascii=False).encode(), status, headers, "application/json")


def answer_to(scope: Scope, error: Exception) -> Response:
    """The answer to a failure; what nobody foresaw is our fault, and its details stay here."""
    match error:
        case HttpError():
            return answer(scope, error.refused_with, error.slug, error.message, error.headers)
        case ServiceError():
            hint = f"; try: {error.hint}" if error.hint else ""
            return answer(scope, error.status, error.code, f"{error.message}{hint}")
        case RequestValidationError():
            return answer(scope, 400, "invalid_request", _faults(error.errors()))
        case HTTPException():
            code = CODES.get(error.status_code, "refused")
            return answer(scope, error.status_code, code, _told(scope, error), error.headers)
        case ClientDisconnect():
            return answer(scope, 400, "client_gone", "the connection ended before the body did")
        case DBAPIError():
            log.error("the store: %s", error)
            return answer(scope, 503, "store_unreachable", "the store cannot be reached; try again")
        case _:
            log.error("%s %s failed", scope["method"], call_of(scope).request_id, exc_info=error)
            return answer(scope, 500, "internal", "this is a fault of the service; its log tells more")


async def refuse(scope: Scope, receive: Receive, send: Send, response: Response) -> None:
    """Send an answer before the body was read, then let the body pass by for a moment.

    A connection that is closed on somebody who still sends is reset, and the answer with it.
    """
    if not _sends_a_body(scope):
        return await response(scope, receive, send)
    response.headers["Connection"] = "close"
    start = {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    await _let_pass(scope, receive)
    return await send({"type": "http.response.body", "body": b""})


def install(app: FastAPI) -> None:
    """Everything a route or the framework raises is answered here."""

    async def handle(request: Request, error: Exception) -> Response:
        return answer_to(request.scope, error)

    for kind in (ServiceError, RequestValidationError, HTTPException, DBAPIError):
        app.add_exception_handler(kind, handle)


def _sends_a_body(scope: Scope) -> bool:
    names = dict(scope["headers"])
    return names.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in names


async def _let_pass(scope: Scope, receive: Receive) -> None:
    """Who waits for `100 Continue` sends nothing until asked, and is not asked."""
    if any(name == b"expect" for name, _ in scope["headers"]):
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass


def _told(scope: Scope, error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return f"there is nothing at {scope['path'][:200]}; /openapi.json lists what there is"
        case 405:
            return f"{scope['method']} is not taken here; Allow says what is"
        case _:
            return str(error.detail)


def _faults(errors: Sequence[Any]) -> str:
    return "; ".join(sentence(each) for each in errors)
