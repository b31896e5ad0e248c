"""The metrics of all hosts for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import of_app
from bridge.http.wire.document import errors
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import read
from bridge.machine.token_scopes import TokenScope
from bridge.operations.health.metrics import Metrics

router = APIRouter(route_class=StrictRoute, tags=["metrics"])


@router.get("/metrics", responses=errors(), openapi_extra=needs(TokenScope.READ), response_class=PlainTextResponse)
async def figures(request: Request, metrics: Annotated[Metrics, of_app("metrics")]) -> PlainTextResponse:
    """The metrics of all hosts in Prometheus' format, at most some seconds old."""
    text, content_type = await read(metrics.text, request.headers.get("accept", ""))
    return PlainTextResponse(text, headers={"content-type": content_type})
