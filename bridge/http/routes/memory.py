"""Looking up what is remembered (ruling J8)."""

from fastapi import APIRouter
from starlette.responses import Response

from bridge.http.answers import json_bytes
from bridge.http.documented import errors
from bridge.http.off_loop import read
from bridge.http.strict_route import StrictRoute
from bridge.operations import memory
from bridge.operations.memory import Recall, Recollection
from bridge.operations.service import Service


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["memory"])

    @made.post("/v1/memory/recall", response_model=Recollection, responses=errors(404, 415))
    async def recall_memory(body: Recall) -> Response:
        """Confirmed memory that answers a query, best first; the same as `service memory recall`."""
        found = await read(memory.recall, service, body)
        return json_bytes(found.model_dump_json().encode())

    return made
