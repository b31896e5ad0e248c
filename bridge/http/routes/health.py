"""Liveness of the bridge, and readiness of the store and Temporal."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter
from sqlalchemy.exc import DBAPIError

from activities.store.registry import host_rows
from bridge.http.wire.authorization import FREE
from bridge.http.wire.dependencies import of_app
from bridge.http.wire.document import errors
from bridge.http.wire.errors import NotReadyError
from bridge.http.wire.schemas import Health
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import act
from bridge.operations.service import Service
from bridge.operations.temporal import client_of
from workflows.model.errors import ServiceError

FRESH_SECONDS = 1.0
"""Seconds a result is cached: anybody may ask."""
AWAY = "the store or Temporal cannot be reached"

router = APIRouter(route_class=StrictRoute, tags=["health"])


class Readiness:
    """This host's readiness, cached for a moment."""

    def __init__(self, service: Service) -> None:
        self._service, self._at, self._why_not = service, float("-inf"), AWAY
        self._turn = asyncio.Lock()

    async def now(self) -> str:
        """Return why the host is not ready; "" if it is ready."""
        async with self._turn:
            if time.monotonic() - self._at > FRESH_SECONDS:
                self._why_not = await act(self._look)
                self._at = time.monotonic()
            return self._why_not

    async def _look(self) -> str:
        service = self._service
        try:
            host = await asyncio.to_thread(host_rows.get, service.store, service.settings.host)
            await client_of(service)
        except (DBAPIError, ServiceError):
            return AWAY
        return f"the host {host.name} is drained" if host is not None and host.draining_at is not None else ""


@router.get("/healthz", responses=errors(), openapi_extra=FREE)
async def healthz() -> Health:
    """Alive. Needs no token and counts against no limit."""
    return Health()


@router.get("/readyz", responses=errors(NotReadyError), openapi_extra=FREE)
async def readyz(readiness: Annotated[Readiness, of_app("readiness")]) -> Health:
    """Ready: the store and Temporal can be reached, and the host is not drained. Needs no token."""
    if why_not := await readiness.now():
        raise NotReadyError(why_not)
    return Health()
