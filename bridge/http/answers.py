"""Answers as they are sent: bytes that were written once."""

import json
from typing import Any

from fastapi import Request
from starlette.responses import Response

from bridge.http.call import call_of


def json_bytes(body: bytes, headers: dict[str, str] | None = None) -> Response:
    """JSON that is written down already."""
    return Response(body, headers=headers, media_type="application/json")


def json_answer(value: Any) -> Response:
    """A value as JSON."""
    return json_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def words(request: Request, body: Any) -> str:
    """What a call says: the same words under the same key are the same call (ruling J9)."""
    told = body.model_dump(mode="json") if body is not None else None
    return f"{request.method} {request.url.path}\n{json.dumps(told, sort_keys=True)}"


def created(request: Request, made: str) -> None:
    """Name in the audit what the call made."""
    call_of(request.scope).created.append(made)
