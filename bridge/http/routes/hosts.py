"""Answers to other hosts of the store with data that only this home has, such as transcripts (ruling Q3). `gates/hosts`
refuses all other callers.

The routes run in separate threads, so that two hosts that ask each other can't deadlock.
"""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query
from starlette.responses import PlainTextResponse, Response

from activities.runs.status import RunStatus
from bridge.http.wire import projections, refusals
from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import ServiceDep
from bridge.http.wire.parameters import LARGEST_OFFSET
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import for_host
from bridge.machine.token_scopes import TokenScope
from bridge.operations.branches import diffs
from bridge.operations.jobs import jobs, output
from bridge.operations.jobs.hosts import NEXT, PREFIX
from bridge.operations.jobs.output import Log
from bridge.operations.pipelines import runs
from bridge.operations.pipelines.runs import StageOutput
from bridge.operations.service import Service

PIECES = 32
"""Pieces of raw output in one answer: two megabytes."""

Offset = Annotated[int | None, Query(ge=0, le=LARGEST_OFFSET)]
Most = Annotated[int, Query(ge=1, le=LARGEST_OFFSET)]

router = APIRouter(prefix=PREFIX.rstrip("/"), route_class=StrictRoute)


def host_app(service: Service) -> FastAPI:
    """Return an application with only these routes, which are not part of the interface for people and programs."""
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.state.service = service
    app.routes.extend(router.routes)
    refusals.install(app)
    return app


@router.get("/attempts/{job_id}/{attempt}/log", openapi_extra=needs(TokenScope.READ))
async def host_log(
    service: ServiceDep,
    job_id: str,
    attempt: int,
    limit: Most,
    longest: Most,
    before: Offset = None,
    cursor: Offset = None,
) -> Log:
    return await for_host(_log, service, job_id, attempt, before, cursor, limit, longest)


@router.get("/attempts/{job_id}/{attempt}/raw", openapi_extra=needs(TokenScope.READ))
async def host_raw(service: ServiceDep, job_id: str, attempt: int, cursor: Offset = None) -> Response:
    piece, behind = await for_host(_raw, service, job_id, attempt, cursor or 0)
    return Response(piece, headers={NEXT: str(behind)}, media_type="text/plain")


@router.get("/attempts/{job_id}/{attempt}/prompt", openapi_extra=needs(TokenScope.READ))
async def host_prompt(service: ServiceDep, job_id: str, attempt: int, most: Most) -> Response:
    return PlainTextResponse((await for_host(output.prompt, service, job_id, attempt, most)).prompt)


@router.get("/jobs/{job_id}/live", openapi_extra=needs(TokenScope.READ))
async def host_live(service: ServiceDep, job_id: str) -> RunStatus | None:
    return await for_host(_live, service, job_id)


@router.get("/jobs/{job_id}/worktree", openapi_extra=needs(TokenScope.READ))
async def host_worktree(service: ServiceDep, job_id: str) -> Response:
    return PlainTextResponse((await for_host(diffs.of_job, service, job_id)).text)


@router.get("/runs/{run_id}/{stage_id}/output", openapi_extra=needs(TokenScope.READ))
async def host_stage(service: ServiceDep, run_id: str, stage_id: str) -> StageOutput | None:
    return await for_host(runs.stage_so_far, service, run_id, stage_id)


def _log(
    service: Service, job_id: str, attempt: int, before: int | None, cursor: int | None, limit: int, longest: int
) -> Log:
    log = output.log(service, job_id, attempt, before=before, cursor=cursor, limit=limit, longest=longest)
    return projections.hide_paths(service, log)


def _raw(service: Service, job_id: str, attempt: int, cursor: int) -> tuple[bytes, int]:
    pieces = [*islice(output.raw(service, job_id, attempt, cursor), PIECES)]
    return b"".join(piece for piece, _ in pieces), pieces[-1][1] if pieces else cursor


def _live(service: Service, job_id: str) -> RunStatus | None:
    return jobs.live(service, jobs.get(service, job_id))
