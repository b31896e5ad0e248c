"""Idempotent calls that start or decide something (ruling J9)."""

import json
from collections.abc import Callable

from fastapi import Request

from bridge.http.wire.call import call_of
from bridge.http.wire.off_loop import act
from bridge.http.wire.schemas import Body
from bridge.operations.idempotency import Act, Answer, once
from bridge.operations.service import Service


async def repeatable(
    service: Service, request: Request, body: Body, key: str | None, new_id: Callable[[], str], do: Act
) -> Answer:
    """Run the action, once per idempotency key: calls of one key with equal method, path and body are one call."""
    words = f"{request.method} {request.url.path}\n{json.dumps(body.model_dump(mode='json'), sort_keys=True)}"
    return await act(lambda: once(service, key, words, new_id, do))


def created(request: Request, made: str) -> None:
    """Record the created id in the audit line."""
    call_of(request.scope).created.append(made)
