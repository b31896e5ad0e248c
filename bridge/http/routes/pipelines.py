"""Pipelines and their runs (spec: POST /v1/pipelines/{name}/run, GET /v1/runs/{id}; rulings J4, J5)."""

from fastapi import APIRouter, Request

from bridge.http.wire.authorization import needs
from bridge.http.wire.call import call_of, created, repeatable
from bridge.http.wire.document import BODY, ORDER, errors
from bridge.http.wire.parameters import Cursor, IdempotencyKey, Limit, RunStateIs
from bridge.http.wire.projections import hidden
from bridge.http.wire.schemas import RunAnswer, RunRequest
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import act, read
from bridge.machine.named_tokens import Scope
from bridge.operations.idempotency import Answer, KeyReusedError
from bridge.operations.pipelines import definitions, runs
from bridge.operations.pipelines.runs import ActiveRunError, RunFilter, RunList, RunView
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError
from workflows.pipeline.payload import PayloadError
from workflows.pipeline.plan import Trigger


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["pipelines"])
    _add_start(made, service)
    _add_runs(made, service)
    return made


def _add_start(made: APIRouter, service: Service) -> None:
    @made.post(
        "/v1/pipelines/{name}/run",
        responses=errors(NotFoundError, PayloadError, ActiveRunError, RefusedError, KeyReusedError, *ORDER, *BODY),
        openapi_extra=needs(Scope.ASK),
    )
    async def run_pipeline(
        name: str, request: Request, body: RunRequest | None = None, idempotency_key: IdempotencyKey = None
    ) -> RunAnswer:
        """Start a run, like `service pipeline run`; refused while the pipeline has an active one."""
        wanted = body or RunRequest()

        async def start(run_id: str | None) -> Answer:
            started = await definitions.run(
                service,
                name,
                wanted.payload,
                Trigger.BRIDGE,
                run_id,
                pull_request=wanted.pull_request,
                issue=wanted.issue,
                base=wanted.base,
                stage_timeout=wanted.timeout,
            )
            return {"run_id": started}

        answer = RunAnswer(**await repeatable(service, request, wanted, idempotency_key, definitions.new_run_id, start))
        created(request, answer.run_id)
        return answer


def _add_runs(made: APIRouter, service: Service) -> None:
    @made.get("/v1/runs", responses=errors(), openapi_extra=needs(Scope.READ))
    async def list_runs(
        pipeline: str | None = None,
        repo: str | None = None,
        state: RunStateIs = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> RunList:
        """The newest runs that match, a page at a time."""
        wanted = RunFilter(pipeline, repo, state, limit, cursor)
        return await read(lambda: hidden(service, runs.list_runs(service, wanted)))

    @made.get("/v1/runs/{run_id}", responses=errors(NotFoundError), openapi_extra=needs(Scope.READ))
    async def get_run(run_id: str) -> RunView:
        """A run with its stages."""
        return await read(lambda: hidden(service, runs.show_run(service, run_id)))

    @made.post(
        "/v1/runs/{run_id}/cancel",
        responses=errors(NotFoundError, RefusedError, *ORDER, *BODY),
        openapi_extra=needs(Scope.ACT),
    )
    async def cancel_run(run_id: str, request: Request) -> RunView:
        """End a run: its commands and agents are stopped."""
        actor = call_of(request.scope).signed
        return await read(hidden, service, await act(lambda: definitions.cancel(service, run_id, actor=actor)))
