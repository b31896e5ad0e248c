"""Liveness of the bridge, and readiness of the store and Temporal."""

import asyncio
import time

from fastapi import APIRouter
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from bridge.http.wire.authorization import FREE
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


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["health"])
    looked = _Looked(service)

    @made.get("/healthz", responses=errors(), openapi_extra=FREE)
    async def healthz() -> Health:
        """Alive. Needs no token and counts against no limit."""
        return Health()

    @made.get("/readyz", responses=errors(NotReadyError), openapi_extra=FREE)
    async def readyz() -> Health:
        """Ready: the store and Temporal can be reached. Needs no token."""
        if not await looked.now():
            raise NotReadyError("the store or Temporal cannot be reached")
        return Health()

    return made


class _Looked:
    """The cached result of the last check."""

    def __init__(self, service: Service) -> None:
        self._service, self._at, self._ready = service, float("-inf"), False
        self._turn = asyncio.Lock()

    async def now(self) -> bool:
        async with self._turn:
            if time.monotonic() - self._at > FRESH_SECONDS:
                self._ready = await act(self._look)
                self._at = time.monotonic()
            return self._ready

    async def _look(self) -> bool:
        try:
            with self._service.store.connect() as connection:
                connection.execute(text("SELECT 1"))
            await client_of(self._service)
        except (DBAPIError, ServiceError):
            return False
        return True
