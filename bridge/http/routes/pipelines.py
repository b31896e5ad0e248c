"""Pipelines and their runs (spec: POST /v1/pipelines/{name}/run, GET /v1/runs/{id}; rulings J4, J5)."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from bridge.http.answers import created, json_answer, json_bytes, words
from bridge.http.documented import errors
from bridge.http.off_loop import act, read
from bridge.http.parameters import Cursor, IdempotencyKey, Limit, RunStateIs
from bridge.http.routes.jobs import CHANNEL
from bridge.http.schemas import RunAnswer, RunList, RunRequest
from bridge.http.strict_route import StrictRoute
from bridge.operations import pipeline_runs, pipelines, projections
from bridge.operations.idempotency import Answer, once
from bridge.operations.pipeline_runs import RunFilter, RunView
from bridge.operations.service import Service
from workflows.pipeline.plan import Trigger


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["pipelines"])

    @made.post("/v1/pipelines/{name}/run", response_model=RunAnswer, responses=errors(404, 409, 415))
    async def run_pipeline(
        name: str, request: Request, body: RunRequest | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Start a run; refused while the pipeline has an active one. The same as `service pipeline run`."""
        wanted = body or RunRequest()

        async def start(run_id: str | None) -> Answer:
            return {"run_id": await pipelines.run(service, name, wanted.payload, Trigger.BRIDGE, run_id)}

        said = words(request, wanted)
        answer = await act(lambda: once(service, idempotency_key, said, pipelines.new_run_id, start))
        created(request, answer["run_id"])
        return json_answer(answer)

    @made.get("/v1/runs", response_model=RunList, responses=errors())
    async def list_runs(
        pipeline: str | None = None,
        repo: str | None = None,
        state: RunStateIs = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """The newest runs that match, a page at a time."""
        return json_bytes(await read(_page, service, RunFilter(pipeline, repo, state, limit, cursor)))

    @made.get("/v1/runs/{run_id}", response_model=RunView, responses=errors(404))
    async def get_run(run_id: str) -> Response:
        """A run with its stages."""
        return json_bytes(await read(_run, service, run_id))

    @made.post("/v1/runs/{run_id}/cancel", response_model=RunView, responses=errors(404, 409, 415))
    async def cancel_run(run_id: str) -> Response:
        """End a run: its commands and agents are stopped."""
        run = await act(lambda: pipelines.cancel(service, run_id, actor=CHANNEL))
        return json_bytes(await read(projections.hidden, service, run.model_dump(mode="json")))

    return made


def _page(service: Service, wanted: RunFilter) -> bytes:
    found = pipeline_runs.list_runs(service, wanted)
    runs = [run.model_dump(mode="json") for run in found.runs]
    return projections.hidden(service, {"runs": runs, "next_cursor": found.next_cursor})


def _run(service: Service, run_id: str) -> bytes:
    return projections.hidden(service, pipeline_runs.show_run(service, run_id).model_dump(mode="json"))
