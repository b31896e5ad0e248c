"""GitHub's webhook. A delivery only announces news; the poller then reads them (ruling L7)."""

from typing import Annotated

from fastapi import APIRouter, Header, Request

from bridge.http.wire.authorization import FREE
from bridge.http.wire.dependencies import ServiceDep
from bridge.http.wire.document import errors
from bridge.http.wire.schemas import Delivered
from bridge.http.wire.thread_pools import read
from bridge.http.wire.webhook import PATH
from bridge.operations.github import polling
from bridge.operations.github.polling import WebhookDelivery

HeaderText = Annotated[str, Header()]

router = APIRouter(tags=["github"])
"""Without strict checks: GitHub defines the body, and any signed one is accepted."""


@router.post(PATH, status_code=202, responses=errors(), openapi_extra=FREE)
async def take_github_webhook(
    service: ServiceDep, request: Request, x_github_delivery: HeaderText = "", x_github_event: HeaderText = ""
) -> Delivered:
    """Accept a signed webhook delivery (`X-Hub-Signature-256`). It only makes the poller read sooner."""
    kind = request.headers.get("content-type", "")
    delivery = WebhookDelivery(x_github_delivery, x_github_event, kind, await request.body())
    return Delivered(says=await read(polling.take, service, delivery))
