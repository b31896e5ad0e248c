"""Searching memory (ruling J8)."""

from fastapi import APIRouter

from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import ServiceDep
from bridge.http.wire.document import BODY, errors
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import read
from bridge.machine.token_scopes import TokenScope
from bridge.operations.registry import memory
from bridge.operations.registry.memory import Recall, Recollection
from workflows.model.errors import NotFoundError

router = APIRouter(route_class=StrictRoute, tags=["memory"])


@router.post("/v1/memory/recall", responses=errors(NotFoundError, *BODY), openapi_extra=needs(TokenScope.READ))
async def recall_memory(service: ServiceDep, body: Recall) -> Recollection:
    """Confirmed memory entries that match a query, best match first, like `service memory recall`."""
    return await read(memory.recall, service, body)
