"""Jobs and trees: read, watch, resume, end, retry (rulings J6, J9)."""

import asyncio
from secrets import token_hex

from fastapi import APIRouter, Request
from starlette.responses import Response

from activities.store.job_rows import JobFilter
from activities.store.tree_list import TreeFilter
from bridge.http.routes.event_stream import look, resumed_at, stream
from bridge.http.wire import projections
from bridge.http.wire.authorization import needs
from bridge.http.wire.call import CHANNEL, call_of
from bridge.http.wire.dependencies import CallDep, HeldDep, OnceDep, ServiceDep
from bridge.http.wire.document import ACTS, STARTS, errors
from bridge.http.wire.errors import TooManyStreamsError, UnauthorizedError
from bridge.http.wire.parameters import (
    AttemptNumber,
    Cursor,
    IfNoneMatch,
    Issue,
    JobId,
    JobStateIs,
    JudgedPullRequest,
    LastEventId,
    Limit,
    LogBefore,
    LogCursor,
    PullRequest,
    SearchText,
    Seen,
    TreeOf,
    TreeStateIs,
    Wait,
    WholeTree,
)
from bridge.http.wire.projections import WrittenJob
from bridge.http.wire.schemas import (
    EventList,
    Gate,
    Job,
    JobList,
    KillAnswer,
    KillRequest,
    ResumeAnswer,
    ResumeRequest,
    TreeList,
)
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import act, read
from bridge.machine.token_scopes import TokenScope
from bridge.operations.branches import merge_gate
from bridge.operations.idempotency import Answer
from bridge.operations.jobs import jobs, output, tree_list
from bridge.operations.jobs.output import Log
from bridge.operations.jobs.views import Event, JobSummary, Tree, listed_tree
from bridge.operations.orders import trees
from bridge.operations.orders.resume import resume
from bridge.operations.orders.trees import RetryAnswer
from bridge.operations.paging import page, place
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError, UsageError
from workflows.model.orders import ResumeOrder
from workflows.text.durations import DurationError, parse_duration

LONGEST_WAIT = 60.0
LOOK_SECONDS = 0.2

router = APIRouter(route_class=StrictRoute, tags=["jobs"])


@router.get(
    "/v1/jobs/{job_id}",
    response_model=Job,
    responses=errors(NotFoundError, TooManyStreamsError) | {304: {"description": "Not changed."}},
    openapi_extra=needs(TokenScope.READ),
)
async def get_job(
    service: ServiceDep,
    held: HeldDep,
    job_id: JobId,
    request: Request,
    wait: Wait = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """One job with its result; with `wait`, the answer comes when the job changes."""
    job = await read(projections.job, service, job_id)
    if wait is not None:
        seconds = _seconds(wait)
        with held.wait(request.scope):
            job = await _wait_for_change(service, job_id, request, job, if_none_match or job.tag, seconds)
        if not await call_of(request.scope).opens():
            raise UnauthorizedError("the token was taken back while this call waited", "Bearer")
    headers = {"ETag": job.tag}
    if job.tag == if_none_match:
        return Response(status_code=304, headers=headers)
    return Response(job.body, headers=headers, media_type="application/json")


@router.get("/v1/jobs", responses=errors(NotFoundError), openapi_extra=needs(TokenScope.READ))
async def list_jobs(
    service: ServiceDep,
    repo: str | None = None,
    agent: str | None = None,
    state: JobStateIs = None,
    tree: TreeOf = None,
    roots: bool = False,
    preflight_failed: bool = False,
    pull_request: PullRequest = None,
    issue: Issue = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JobList:
    """The newest jobs that match, a page at a time."""
    wanted = JobFilter(
        repo=repo,
        agent=agent,
        states=jobs.states_by_name(state),
        tree=tree,
        roots_only=roots,
        preflight_failed=preflight_failed,
        pull_request=pull_request,
        issue=issue,
        limit=limit + 1,
        before=place(cursor),
    )
    return await read(_page, service, wanted)


@router.get("/v1/trees", responses=errors(), openapi_extra=needs(TokenScope.READ))
async def list_trees(
    service: ServiceDep,
    repo: str | None = None,
    agent: str | None = None,
    state: TreeStateIs = None,
    search: SearchText = "",
    pull_request: PullRequest = None,
    issue: Issue = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> TreeList:
    """The newest trees that match, each with its first job, a page at a time."""
    wanted = TreeFilter(
        repo=repo,
        agent=agent,
        state=tree_list.state_by_name(state),
        text=search,
        pull_request=pull_request,
        issue=issue,
        limit=limit + 1,
        before=place(cursor),
    )
    return await read(_trees, service, wanted)


@router.get("/v1/jobs/{job_id}/tree", responses=errors(NotFoundError), openapi_extra=needs(TokenScope.READ))
async def get_tree(service: ServiceDep, job_id: JobId) -> Tree:
    """The tree a job belongs to: its task, all its jobs, its bounds."""
    return await read(projections.tree, service, job_id)


@router.get(
    "/v1/jobs/{job_id}/log", responses=errors(NotFoundError, RefusedError), openapi_extra=needs(TokenScope.READ)
)
async def get_log(
    service: ServiceDep,
    job_id: JobId,
    attempt: AttemptNumber = None,
    before: LogBefore = None,
    cursor: LogCursor = None,
    limit: Limit = 50,
) -> Log:
    """Return a part of a job's transcript, by default its end; it may have a few entries more than its limit."""
    return await read(_log, service, job_id, attempt, before, cursor, limit)


@router.get("/v1/jobs/{job_id}/gate", responses=errors(NotFoundError), openapi_extra=needs(TokenScope.READ))
async def get_gate(service: ServiceDep, job_id: JobId, pull_request: JudgedPullRequest = None) -> Gate:
    """Return whether a tree's work is ready to be merged, and why; for a pull request, at its last fetched head."""
    return await read(_gate, service, job_id, pull_request)


@router.get(
    "/v1/jobs/{job_id}/events",
    response_model=EventList,
    responses=errors(NotFoundError, TooManyStreamsError)
    | {
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "Nothing more will happen: a stream that is taken up again ends here."},
    },
    openapi_extra=needs(TokenScope.READ),
)
async def get_events(
    service: ServiceDep,
    held: HeldDep,
    job_id: JobId,
    request: Request,
    cursor: Seen = 0,
    limit: Limit = 50,
    whole_tree: WholeTree = None,
    last_event_id: LastEventId = None,
) -> EventList | Response:
    """The events of a job or its tree; with `Accept: text/event-stream`, new ones as they happen."""
    after = resumed_at(last_event_id, cursor)
    if "text/event-stream" not in request.headers.get("accept", ""):
        return await read(_events, service, job_id, after, limit, whole_tree)
    events, over = await read(look, service, job_id, after, whole_tree)
    if over and not events and last_event_id is not None:
        return Response(status_code=204)
    body = stream(service, job_id, after, whole_tree, call_of(request.scope).opens)
    return held.stream(request.scope, body)


@router.post("/v1/jobs/{job_id}/resume", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def resume_job(
    service: ServiceDep, job_id: JobId, body: ResumeRequest, call: CallDep, once: OnceDep
) -> ResumeAnswer:
    """Answer a pause, or decide about its failures, like `service resume`."""

    async def decide(request_id: str | None) -> Answer:
        fields = body.model_dump(exclude_none=True) | {"job_id": job_id, "request_id": request_id or ""}
        verdict = await resume(service, ResumeOrder(actor=call.actor, channel=call.channel, **fields))
        return {"job_id": job_id, "verb": body.verb, "message": verdict.message, "applied": verdict.applied}

    def new_id() -> str:
        return f"{CHANNEL}-{token_hex(12)}"

    return ResumeAnswer(**await once.run(body, new_id, decide))


@router.post("/v1/jobs/{job_id}/kill", responses=ACTS, openapi_extra=needs(TokenScope.ACT))
async def kill_job(service: ServiceDep, job_id: JobId, call: CallDep, body: KillRequest | None = None) -> KillAnswer:
    """End the tree a job belongs to; a repeated kill changes nothing. A blocked tree ends at once."""
    now = body is not None and body.now
    killed = await act(lambda: trees.kill(service, job_id, actor=call.actor_in_words, immediate=now))
    return KillAnswer.model_validate(killed, from_attributes=True)


@router.post("/v1/jobs/{job_id}/retry", responses=ACTS, openapi_extra=needs(TokenScope.ACT))
async def retry_job(service: ServiceDep, job_id: JobId, call: CallDep) -> RetryAnswer:
    """Run a failed job again; a tree that it blocked then continues. A running job is refused."""
    return await act(lambda: trees.retry(service, job_id, actor=call.actor_in_words))


@router.post("/v1/jobs/{job_id}/dismiss", responses=ACTS, openapi_extra=needs(TokenScope.ACT))
async def dismiss_job(service: ServiceDep, job_id: JobId, call: CallDep) -> KillAnswer:
    """Dismiss a blocked task: it ends, and its unmerged branches are named."""
    dismissed = await act(lambda: trees.dismiss(service, job_id, actor=call.actor_in_words))
    return KillAnswer.model_validate(dismissed, from_attributes=True)


def _log(service: Service, job_id: str, attempt: int | None, before: int | None, cursor: int | None, limit: int) -> Log:
    log = output.log(service, job_id, attempt, before=before, cursor=cursor, limit=limit)
    return projections.hide_paths(service, log)


def _gate(service: Service, job_id: str, pull_request: int | None) -> Gate:
    verdict = merge_gate.of_tree(service, job_id, pull_request=pull_request, fetch=False)
    return projections.view_of(service, Gate, verdict)


def _page(service: Service, wanted: JobFilter) -> JobList:
    records, more = page(jobs.find(service, wanted), wanted.limit, lambda last: (last.queued_at, last.job_id))
    listed = [JobSummary.of(record) for record in records]
    return projections.hide_paths(service, JobList(jobs=listed, next_cursor=more))


def _trees(service: Service, wanted: TreeFilter) -> TreeList:
    rows, more = page(tree_list.find(service, wanted), wanted.limit, tree_list.cursor_key)
    return projections.hide_paths(service, TreeList(trees=[listed_tree(row) for row in rows], next_cursor=more))


def _events(service: Service, job_id: str, after: int, limit: int, whole_tree: bool | None) -> EventList:
    records = jobs.events(service, job_id, after=after, limit=limit + 1, whole_tree=whole_tree)
    events = [Event.of(record) for record in records[:limit]]
    more = events[-1].seq if len(records) > limit else None
    return projections.hide_paths(service, EventList(events=events, next_cursor=more))


def _seconds(wait: str) -> float:
    try:
        seconds = parse_duration(wait)
    except DurationError as error:
        raise UsageError(f"wait {error}") from None
    if seconds > LONGEST_WAIT:
        raise UsageError(f"wait must be at most {LONGEST_WAIT:g}s")
    return seconds


async def _wait_for_change(
    service: Service, job_id: str, request: Request, job: WrittenJob, known: str, seconds: float
) -> WrittenJob:
    """Poll until the job differs from the version the client knows, or can't change any more."""
    loop = asyncio.get_running_loop()
    until, opens = loop.time() + seconds, call_of(request.scope).opens

    async def waits() -> bool:
        return job.tag == known and not job.ended and loop.time() < until and await opens()

    while await waits() and not await request.is_disconnected():
        await asyncio.sleep(min(LOOK_SECONDS, max(0.0, until - loop.time())))
        job = await read(projections.job, service, job_id)
    return job
