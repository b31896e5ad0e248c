"""Asking agents (ruling J7)."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from bridge.http.answers import created, json_answer, words
from bridge.http.documented import errors
from bridge.http.off_loop import act
from bridge.http.parameters import IdempotencyKey
from bridge.http.schemas import AskAnswer, AskRequest
from bridge.http.strict_route import StrictRoute
from bridge.operations import orders, trees
from bridge.operations.idempotency import Answer, once
from bridge.operations.service import Service
from workflows.contract.models import Action


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["agents"])

    @made.post("/v1/agents/{name}/ask", response_model=AskAnswer, responses=errors(404, 409, 415))
    async def ask_agent(
        name: str, body: AskRequest, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Ask an agent in the background; the same gates as `service agent ask`."""
        order = orders.Order(agent=name, action=Action.ASK, **body.model_dump())

        async def start(root: str | None) -> Answer:
            return {"job_id": await orders.start(service, order, root)}

        answer = await act(lambda: once(service, idempotency_key, words(request, body), trees.new_root_id, start))
        created(request, answer["job_id"])
        return json_answer(answer)

    return made
