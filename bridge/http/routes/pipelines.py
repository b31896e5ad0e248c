"""Pipelines and their runs (spec: POST /v1/pipelines/{name}/run, GET /v1/runs/{id}; rulings J4, J5)."""

from fastapi import APIRouter

from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import CallDep, OnceDep, ServiceDep
from bridge.http.wire.document import ACTS, BODY, ORDER, errors
from bridge.http.wire.parameters import Cursor, Limit, RunStateIs
from bridge.http.wire.projections import hide_paths
from bridge.http.wire.schemas import RunAnswer, RunRequest
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import act, read
from bridge.machine.token_scopes import TokenScope
from bridge.operations.idempotency import Answer, KeyReusedError
from bridge.operations.pipelines import definitions, runs
from bridge.operations.pipelines.runs import ActiveRunError, RunFilter, RunList, RunView
from workflows.model.errors import NotFoundError, RefusedError
from workflows.pipeline.payload import PayloadError
from workflows.pipeline.plan import Trigger

router = APIRouter(route_class=StrictRoute, tags=["pipelines"])


@router.post(
    "/v1/pipelines/{name}/run",
    responses=errors(NotFoundError, PayloadError, ActiveRunError, RefusedError, KeyReusedError, *ORDER, *BODY),
    openapi_extra=needs(TokenScope.ASK),
)
async def run_pipeline(
    service: ServiceDep, name: str, call: CallDep, once: OnceDep, body: RunRequest | None = None
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

    answer = RunAnswer(**await once.run(wanted, definitions.new_run_id, start))
    call.created.append(answer.run_id)
    return answer


@router.get("/v1/runs", responses=errors(), openapi_extra=needs(TokenScope.READ))
async def list_runs(
    service: ServiceDep,
    pipeline: str | None = None,
    repo: str | None = None,
    state: RunStateIs = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunList:
    """The newest runs that match, a page at a time."""
    wanted = RunFilter(pipeline, repo, state, limit, cursor)
    return await read(lambda: hide_paths(service, runs.list_runs(service, wanted)))


@router.get("/v1/runs/{run_id}", responses=errors(NotFoundError), openapi_extra=needs(TokenScope.READ))
async def get_run(service: ServiceDep, run_id: str) -> RunView:
    """A run with its stages."""
    return await read(lambda: hide_paths(service, runs.show_run(service, run_id)))


@router.post("/v1/runs/{run_id}/cancel", responses=ACTS, openapi_extra=needs(TokenScope.ACT))
async def cancel_run(service: ServiceDep, run_id: str, call: CallDep) -> RunView:
    """End a run: its commands and agents are stopped."""
    return await read(
        hide_paths, service, await act(lambda: definitions.cancel(service, run_id, actor=call.actor_in_words))
    )
