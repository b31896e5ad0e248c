"""The OpenAPI document: every status and error declared, so that clients can be made from it."""

from itertools import groupby
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from bridge.http.wire.errors import (
    BusyError,
    ForbiddenHostError,
    ForbiddenOriginError,
    ForbiddenScopeError,
    HttpError,
    InternalError,
    InvalidJsonError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotJsonError,
    RateLimitedError,
    StoreUnreachableError,
    TooLargeError,
    UnauthorizedError,
)
from bridge.http.wire.schemas import Error
from bridge.operations.idempotency import KeyReusedError
from bridge.operations.refused_agents import ForPeopleError, UnknownCallerError
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError, UsageError

TOKENS = (
    "What is in `bridge.token` in the service home, which may do everything, or a token of a name and a scope: "
    "`read` looks; `ask` also asks agents and runs pipelines; `act` also starts any other work and carries people's "
    "decisions. Each operation names the scope it takes. An agent of the service is refused orders whatever token it "
    "shows."
)

Responses = dict[int | str, dict[str, Any]]

ALWAYS: tuple[type[ServiceError], ...] = (
    UsageError,
    InvalidRequestError,
    UnauthorizedError,
    ForbiddenHostError,
    ForbiddenOriginError,
    MethodNotAllowedError,
    TooLargeError,
    RateLimitedError,
    InternalError,
    UnreachableError,
    StoreUnreachableError,
    BusyError,
)
"""Errors of every endpoint."""

ORDER: tuple[type[ServiceError], ...] = (ForbiddenScopeError, ForPeopleError, UnknownCallerError)
"""Further errors of endpoints that start, decide or end something."""

BODY: tuple[type[ServiceError], ...] = (InvalidJsonError, NotJsonError)
"""Further errors of endpoints that take a body."""


ERROR = {"$ref": "#/components/schemas/Error"}
"""A reference instead of a model, for which FastAPI would build a validator for every status of every endpoint at each
start.
"""


def errors(*more: type[ServiceError]) -> Responses:
    """Return the responses an endpoint declares: the common errors and its own."""
    kinds = sorted({*ALWAYS, *more}, key=lambda kind: (kind.status, (*ALWAYS, *more).index(kind)))
    return {status: _response(list(same)) for status, same in groupby(kinds, key=lambda kind: kind.status)}


def meaning(kind: type[ServiceError]) -> str:
    """Return the first line of an error class's docstring."""
    return (kind.__doc__ or "").partition("\n")[0]


def _response(kinds: list[type[ServiceError]]) -> dict[str, Any]:
    first = kinds[0]
    example = Error(error=meaning(first), code=first.code, request_id="req-6f1c0a9d2b7e4c35")
    response: dict[str, Any] = {
        "description": " ".join(f"`{kind.code}`: {meaning(kind)}" for kind in kinds),
        "content": {"application/json": {"schema": ERROR, "example": example.model_dump()}},
    }
    names = {kind.header for kind in kinds if issubclass(kind, HttpError) and kind.header}
    return response | ({"headers": {name: {"schema": {"type": "string"}} for name in names}} if names else {})


ACTS = errors(NotFoundError, RefusedError, *ORDER, *BODY)
"""The responses of an endpoint that changes something existing."""

STARTS = errors(NotFoundError, RefusedError, KeyReusedError, *ORDER, *BODY)
"""The responses of an endpoint that takes an idempotency key."""


def document(app: FastAPI) -> dict[str, Any]:
    """Build FastAPI's OpenAPI document, without the 422 response that is never sent, and with the required bearer
    token.
    """
    if app.openapi_schema is None:
        for route in app.routes:
            if isinstance(route, APIRoute):
                route.operation_id = route.name
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                _without_null(operation)
        schemas = schema["components"]["schemas"] | {Error.__name__: Error.model_json_schema()}
        schema["components"]["schemas"] = {
            name: schemas[name] for name in sorted(schemas) if name not in ("HTTPValidationError", "ValidationError")
        }
        scheme = {"type": "http", "scheme": "bearer", "description": TOKENS}
        schema["components"]["securitySchemes"] = {"bearer": scheme}
        schema["security"] = [{"bearer": []}]
        app.openapi_schema = schema
    return app.openapi_schema


def _without_null(operation: dict[str, Any]) -> None:
    """Remove `null` from the schemas of parameters and bodies: optional values are omitted instead."""
    places = [*operation.get("parameters", ())]
    places += operation.get("requestBody", {"content": {}})["content"].values()
    for place in places:
        schema = place["schema"]
        if kinds := [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]:
            (kind,) = kinds
            place["schema"] = kind if "$ref" in kind else schema | kind
