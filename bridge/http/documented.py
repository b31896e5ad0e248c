"""The OpenAPI document: every status and error declared, so that clients can be made from it."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from bridge.http.schemas import Error

Responses = dict[int | str, dict[str, Any]]

_ERRORS = {
    400: ("invalid_request", "The request's words are off."),
    401: ("unauthorized", "The token is missing or wrong."),
    403: ("forbidden_host", "The Host or the Origin is not ours."),
    404: ("not_found", "There is no such thing."),
    405: ("method_not_allowed", "The method is not taken here."),
    409: ("refused", "A gate or a rule says no; nothing was changed."),
    413: ("too_large", "The request body is too large."),
    415: ("not_json", "The body is not JSON."),
    429: ("rate_limited", "Too many requests; Retry-After says when to come again."),
    500: ("internal", "A fault of the service."),
    503: ("unreachable", "Temporal or the store cannot be reached; nothing was recorded."),
}
_ALWAYS = (400, 401, 403, 405, 413, 429, 500, 503)
_HEADERS = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After"}


def errors(*more: int) -> Responses:
    """The errors of an endpoint: those of every one, and its own."""
    return {status: _error(status) for status in sorted({*_ALWAYS, *more})}


def _error(status: int) -> dict[str, Any]:
    code, description = _ERRORS[status]
    example = {"error": description, "code": code, "request_id": "req-6f1c0a9d2b7e4c35"}
    said: dict[str, Any] = {
        "model": Error,
        "description": description,
        "content": {"application/json": {"example": example}},
    }
    if name := _HEADERS.get(status):
        said["headers"] = {name: {"schema": {"type": "string"}}}
    return said


def document(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document, without the 422 that is never sent, with the bearer token that is always wanted."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for operation in (each for path in made["paths"].values() for each in path.values()):
            operation["responses"].pop("422", None)
            _without_null(operation)
        for name in ("HTTPValidationError", "ValidationError"):
            made["components"]["schemas"].pop(name, None)
        scheme = {"type": "http", "scheme": "bearer", "description": "What is in `bridge.token` in the service home."}
        made["components"]["securitySchemes"] = {"bearer": scheme}
        made["security"] = [{"bearer": []}]
        app.openapi_schema = made
    return app.openapi_schema


def _without_null(operation: dict[str, Any]) -> None:
    """What may be left out is left out: no query, header or body says `null`."""
    places = [*operation.get("parameters", ())]
    places += operation.get("requestBody", {"content": {}})["content"].values()
    for place in places:
        schema = place["schema"]
        if kinds := [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]:
            (kind,) = kinds
            place["schema"] = kind if "$ref" in kind else schema | kind
