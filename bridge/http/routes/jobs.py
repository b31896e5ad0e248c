"""Jobs and trees: looked at, waited for, followed, resumed, ended (rulings J6, J9)."""

import asyncio
from hashlib import blake2b
from secrets import token_hex

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from bridge.http.answers import json_answer, json_bytes, words
from bridge.http.cursors import cursor as cursor_after
from bridge.http.cursors import place
from bridge.http.documented import errors
from bridge.http.event_stream import look, resumed_at, stream
from bridge.http.off_loop import act, read
from bridge.http.parameters import (
    Cursor,
    IdempotencyKey,
    IfNoneMatch,
    JobId,
    JobStateIs,
    LastEventId,
    Limit,
    Seen,
    TreeOf,
    Wait,
    WholeTree,
)
from bridge.http.plain_route import PlainRoute
from bridge.http.schemas import (
    EventList,
    Job,
    JobList,
    KillAnswer,
    KillRequest,
    ResumeAnswer,
    ResumeRequest,
    Tree,
)
from bridge.http.strict_route import StrictRoute
from bridge.operations import jobs, people, projections, trees
from bridge.operations.idempotency import Answer, once
from bridge.operations.projections import Told
from bridge.operations.service import Service
from workflows.contract.durations import DurationError, parse_duration
from workflows.errors import UsageError

CHANNEL = "bridge"
LONGEST_WAIT = 60.0
LOOK_SECONDS = 0.2


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["jobs"])
    _add_looks(made, service)
    _add_orders(made, service)
    return made


def _add_looks(made: APIRouter, service: Service) -> None:
    @made.get("/v1/jobs", response_model=JobList, responses=errors(404))
    async def list_jobs(
        repo: str | None = None,
        agent: str | None = None,
        state: JobStateIs = None,
        tree: TreeOf = None,
        roots: bool = False,
        preflight_failed: bool = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """The newest jobs that match, a page at a time."""
        wanted = jobs.Filter(repo, agent, state, tree, roots, preflight_failed, limit + 1, place(cursor))
        return json_bytes(await read(_page, service, wanted))

    @made.get("/v1/jobs/{job_id}", response_model=Job, responses=errors(404) | {304: {"description": "Not changed."}})
    async def get_job(
        job_id: JobId,
        request: Request,
        wait: Wait = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """One job with its result; `wait` answers when it changes."""
        told = await read(projections.job, service, job_id)
        if wait is not None:
            told = await _changed(service, job_id, request, told, if_none_match or _tag(told), _seconds(wait))
        return _answer(told, if_none_match)

    @made.get("/v1/jobs/{job_id}/tree", response_model=Tree, responses=errors(404))
    async def get_tree(job_id: JobId) -> Response:
        """The tree a job belongs to: its task, all its jobs, its bounds."""
        return json_bytes(await read(projections.tree, service, job_id))

    @made.get(
        "/v1/jobs/{job_id}/events",
        response_model=EventList,
        responses=errors(404)
        | {
            200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
            204: {"description": "Nothing more will happen: a stream that is taken up again ends here."},
        },
    )
    async def get_events(
        job_id: JobId,
        request: Request,
        cursor: Seen = 0,
        limit: Limit = 50,
        whole_tree: WholeTree = None,
        last_event_id: LastEventId = None,
    ) -> Response:
        """What happened to a job or its tree; with `Accept: text/event-stream`, as it happens."""
        after = resumed_at(last_event_id, cursor)
        if "text/event-stream" not in request.headers.get("accept", ""):
            return json_bytes(await read(_events, service, job_id, after, limit, whole_tree))
        found, over = await read(look, service, job_id, after, whole_tree)
        if over and not found and last_event_id is not None:
            return Response(status_code=204)
        told = stream(service, job_id, after, whole_tree)
        return StreamingResponse(told, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _add_orders(made: APIRouter, service: Service) -> None:
    @made.post("/v1/jobs/{job_id}/resume", response_model=ResumeAnswer, responses=errors(404, 409, 415))
    async def resume_job(
        job_id: JobId, body: ResumeRequest, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Answer a pause, or decide about its failures; the same as `service resume`."""

        async def resume(request_id: str | None) -> Answer:
            order = people.Resume(
                job_id,
                body.verb,
                body.text,
                CHANNEL,
                CHANNEL,
                body.round,
                body.digest or "",
                request_id or "",
                partial=body.partial,
                other=body.other,
            )
            verdict = await people.resume(service, order)
            return {"job_id": job_id, "verb": body.verb, "message": verdict.message, "applied": verdict.applied}

        said = words(request, body)
        return json_answer(
            await act(lambda: once(service, idempotency_key, said, lambda: f"{CHANNEL}-{token_hex(12)}", resume))
        )

    @made.post("/v1/jobs/{job_id}/kill", response_model=KillAnswer, responses=errors(404, 409, 415))
    async def kill_job(job_id: JobId, body: KillRequest | None = None) -> Response:
        """End the tree a job belongs to; killing it twice is killing it once. A blocked one is over at once."""
        now = body is not None and body.now
        return _killed(await act(lambda: trees.kill(service, job_id, actor=CHANNEL, immediate=now)))

    @made.post("/v1/jobs/{job_id}/dismiss", response_model=KillAnswer, responses=errors(404, 409, 415))
    async def dismiss_job(job_id: JobId) -> Response:
        """Give a blocked task up: it is over, and its unmerged branches are named."""
        return _killed(await act(lambda: trees.dismiss(service, job_id, actor=CHANNEL)))


def _killed(killed: trees.Killed) -> Response:
    unmerged = [leg.branch for leg in killed.unmerged]
    return json_answer({"root_job_id": killed.root_job_id, "over": killed.over, "unmerged_branches": unmerged})


def glance(service: Service) -> PlainRoute:
    """`get_job` where nothing is to be waited for."""
    glances = projections.Glances(service)

    async def get_job(request: Request) -> Response:
        job_id = request.path_params["job_id"]
        told = glances.job(job_id)
        if told is None:
            told = await read(projections.job, service, job_id)
        return _answer(told, request.headers.get("if-none-match"))

    return PlainRoute("/v1/jobs/{job_id}", get_job)


def _page(service: Service, wanted: jobs.Filter) -> bytes:
    """One more than the page holds was asked for: it says whether there is another."""
    found = jobs.find(service, wanted)
    page = found[: wanted.limit - 1]
    more = cursor_after(page[-1].queued_at, page[-1].job_id) if len(found) > len(page) else None
    return projections.hidden(service, {"jobs": projections.job_list(page), "next_cursor": more})


def _events(service: Service, job_id: str, after: int, limit: int, whole_tree: bool | None) -> bytes:
    found = jobs.events(service, job_id, after=after, limit=limit + 1, whole_tree=whole_tree)
    page = found[:limit]
    more = page[-1].seq if len(found) > limit else None
    return projections.hidden(service, {"events": [projections.event(each) for each in page], "next_cursor": more})


def _seconds(wait: str) -> float:
    try:
        seconds = parse_duration(wait)
    except DurationError as error:
        raise UsageError(f"wait {error}") from None
    if seconds > LONGEST_WAIT:
        raise UsageError(f"wait must be at most {LONGEST_WAIT:g}s")
    return seconds


async def _changed(service: Service, job_id: str, request: Request, told: Told, known: str, seconds: float) -> Told:
    """Look again until it is another than the one that is known, or nothing more can come of it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while _tag(told) == known and not told.ended and loop.time() < until and not await request.is_disconnected():
        await asyncio.sleep(min(LOOK_SECONDS, max(0.0, until - loop.time())))
        told = await read(projections.job, service, job_id)
    return told


def _tag(told: Told) -> str:
    return f'"{blake2b(told.body, digest_size=12).hexdigest()}"'


def _answer(told: Told, known: str | None) -> Response:
    tag = _tag(told)
    return Response(status_code=304, headers={"ETag": tag}) if tag == known else json_bytes(told.body, {"ETag": tag})
