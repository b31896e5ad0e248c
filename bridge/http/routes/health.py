"""Whether the bridge is alive, and whether what it stands on is there."""

import asyncio
import time
from typing import Any

from fastapi import APIRouter
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from starlette.responses import Response

from activities.temporal import connect
from bridge.http.answers import json_answer
from bridge.http.documented import errors
from bridge.http.errors import HttpError
from bridge.http.off_loop import act
from bridge.http.schemas import Health
from bridge.http.strict_route import StrictRoute
from bridge.operations.service import Service
from workflows.errors import ServiceError

FRESH_SECONDS = 1.0
"""Anybody may ask, so nobody is looked for more often than that."""


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["health"])
    looked = _Looked(service)
    free: dict[str, Any] = {"security": []}

    @made.get("/healthz", response_model=Health, responses=errors(), openapi_extra=free)
    async def healthz() -> Response:
        """Alive. Needs no token and counts against no limit."""
        return json_answer({"status": "ok"})

    @made.get("/readyz", response_model=Health, responses=errors(), openapi_extra=free)
    async def readyz() -> Response:
        """Ready: the store and Temporal can be reached. Needs no token."""
        if not await looked.now():
            raise HttpError(503, "not_ready", "the store or Temporal cannot be reached")
        return json_answer({"status": "ok"})

    return made


class _Looked:
    """The last look, for as long as it is fresh."""

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
            await connect(self._service.home, self._service.settings)
        except (DBAPIError, ServiceError):
            return False
        return True
