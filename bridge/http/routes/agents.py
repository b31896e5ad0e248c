"""Asking agents (ruling J7)."""

from fastapi import APIRouter, Request

from bridge.http.wire.document import BODY, ORDER, errors
from bridge.http.wire.parameters import IdempotencyKey
from bridge.http.wire.repeatable import created, repeatable
from bridge.http.wire.schemas import AskAnswer, AskRequest
from bridge.http.wire.scopes import needs
from bridge.http.wire.strict_route import StrictRoute
from bridge.machine.named_tokens import Scope
from bridge.operations import new_jobs, trees
from bridge.operations.idempotency import Answer, KeyReusedError
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import NotFoundError, RefusedError


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["agents"])

    @made.post(
        "/v1/agents/{name}/ask",
        responses=errors(NotFoundError, RefusedError, KeyReusedError, *ORDER, *BODY),
        openapi_extra=needs(Scope.ASK),
    )
    async def ask_agent(
        name: str, body: AskRequest, request: Request, idempotency_key: IdempotencyKey = None
    ) -> AskAnswer:
        """Ask an agent in the background; the same gates as `service agent ask`."""
        new = new_jobs.NewJob(agent=name, action=Action.ASK, **body.model_dump())

        async def start(root: str | None) -> Answer:
            return {"job_id": await new_jobs.start(service, new, root)}

        answer = AskAnswer(**await repeatable(service, request, body, idempotency_key, trees.new_root_id, start))
        created(request, answer.job_id)
        return answer

    return made
