"""Searching memory (ruling J8)."""

from fastapi import APIRouter

from bridge.http.wire.authorization import needs
from bridge.http.wire.document import BODY, errors
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import read
from bridge.machine.named_tokens import Scope
from bridge.operations.registry import memory
from bridge.operations.registry.memory import Recall, Recollection
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["memory"])

    @made.post("/v1/memory/recall", responses=errors(NotFoundError, *BODY), openapi_extra=needs(Scope.READ))
    async def recall_memory(body: Recall) -> Recollection:
        """Confirmed memory that answers a query, best first, like `service memory recall`."""
        return await read(memory.recall, service, body)

    return made
