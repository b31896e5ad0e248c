"""The activities of workflows: names, types, queues, timeouts, retries. Their implementations are in `activities`."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any, TypedDict, TypeVar, cast

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeoutError
from temporalio.workflow import ActivityHandle

from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import Records, Written
from workflows.model.states import Continuation, JobState
from workflows.model.wire import Wire
from workflows.policy.placement import NAMED
from workflows.temporal.messages import Move
from workflows.temporal.moves import Moves
from workflows.text.markdown import summary_line
from workflows.tree.details import wrote
from workflows.tree.state import TreeState

R = TypeVar("R")
T = TypeVar("T")

FOREVER = timedelta(days=365)
"""A run may wait for a free slot for any time; its own timeout starts when it begins, and its supervisor enforces
it.
"""

HEARTBEAT = timedelta(seconds=30)
"""The heartbeat timeout: after it, a host's runs are offered to it again, and it re-attaches instead of repeating
them. A worker that starts does not wait for it: `activities.takeover` has a dead one's runs offered again at once.
"""

TASK_TIMEOUT = timedelta(seconds=4)
"""The timeout of a workflow task, and so the delay after its worker died. Tasks take some milliseconds, and one that
waits for the store sends heartbeats in between; one that takes longer is repeated.
"""

WAITS = "RuntimeWaits"
"""The error type of a run that has to be retried once its program can work."""

REFUSED = "StoreRefused"
"""The error type of a write that can never succeed: it is not retried (ruling B6)."""

RUN_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=100,
    non_retryable_error_types=["PayloadsTooLarge"],
)
RECORD_RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30))
PLACE_RETRIES = RetryPolicy(initial_interval=timedelta(seconds=2), maximum_interval=timedelta(seconds=30))
"""The server repeats the look for a host: a long wait adds nothing to the history."""


class Local(TypedDict):
    """Options of local activities that write to the store."""

    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy


LOCAL: Local = {"start_to_close_timeout": timedelta(seconds=60), "retry_policy": RECORD_RETRIES}
LOCAL_PLACE: Local = {
    "start_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(maximum_interval=timedelta(seconds=30), non_retryable_error_types=[WAITS]),
}

NAMING = (
    EventKind.TREE_ENDED,
    EventKind.TREE_STARTED,
    EventKind.TASK_BLOCKED,
    EventKind.DELEGATION_KILLED,
    EventKind.RETRY_REQUESTED,
    EventKind.RESUME_ACCEPTED,
    EventKind.ROUND_OPENED,
    EventKind.ROUND_JOINED,
    EventKind.ROUND_EXPIRED,
    EventKind.ROUND_CLOSED,
    EventKind.DELEGATION_FINALIZE_ENQUEUED,
    EventKind.BATCH_SETTLED,
    EventKind.CONTINUATION_ENQUEUED,
    EventKind.JOB_ENDED,
    EventKind.JOB_TAKEN_BACK,
    EventKind.JOB_BEGUN,
    EventKind.JOB_QUEUED,
)
"""The events that may name a write, the most significant first. Histories contain these names: do not add kinds
here, or waiting trees could not go on.
"""


@activity.defn
def run_job(run: JobRun) -> JobOutcome:
    """Run one attempt of a job to its end, on the host that owns the checkout."""
    raise NotImplementedError


class Offer(Wire):
    """One offer of one attempt of a job or a stage."""

    job_id: str
    attempt: int
    offer: int = 1


class Claim(Wire):
    """The claim on an offer: the time at which its host began the job, or None if no host has."""

    begun_at: float | None = None


@activity.defn
def take_back(offer: Offer) -> Claim:
    """Withdraw an offer unless its host has begun the job; after that no host can begin it (ruling B5)."""
    raise NotImplementedError


class GiveUp(Wire):
    """An offer, and the order to give it up."""

    offer: Offer
    move: Move


class GivenUp(Wire):
    """The end of an attempt whose host is lost: the outcome that the host had recorded, or moved (ruling Q5).

    Without an outcome the host keeps the attempt: it has come back, or has begun what only it can finish.
    """

    outcome: dict[str, Any] | None = None


@activity.defn
def give_up(order: GiveUp) -> GivenUp:
    """Decide once and for all whether an attempt moves; after that its host can neither begin nor record it."""
    raise NotImplementedError


class Wanted(Wire):
    """An attempt of a job or a stage that needs a host (ruling Q4)."""

    offer: Offer
    root: str
    """The tree, or the pipeline's run."""
    repo: str
    runtime: str
    agent: str = ""
    """The registered agent whose labels count too; empty for others."""
    stage: str = ""
    """The id of a shell stage; empty for a job."""
    host: str
    """The host of its tree or run."""
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()


@activity.defn
def place(wanted: Wanted) -> str:
    """Choose a host, and record the choice; fail with the error type `WAITS` while no host can run the attempt."""
    raise NotImplementedError


WRITERS = ("record", *(f"record {kind.value}" for kind in NAMING))
"""The names of the one activity that writes rows of the read model, idempotently.

It is named after the event it records: for local activities the web UI's timeline shows names only.
"""


Writer = Callable[[Records], Written | None] | Callable[[Records], Awaitable[Written | None]]


def writers(write: Writer) -> list[Callable[..., object]]:
    """Return the activity that writes rows, under each of its names."""
    return [_named(name, write) for name in WRITERS]


def _named(name: str, write: Writer) -> Callable[..., object]:
    """Return the activity under a name; it is a coroutine function if `write` is one."""

    @activity.defn(name=name)
    def record(records: Records) -> Written | None:
        return cast("Written | None", write(records))

    @activity.defn(name=name)
    async def record_async(records: Records) -> Written | None:
        return await cast("Awaitable[Written | None]", write(records))

    return record_async if iscoroutinefunction(write) else record


@activity.defn
def deliver(notification_id: str) -> None:
    """Deliver a notification on every pending channel; fail while one is left."""
    raise NotImplementedError


@activity.defn
def keep_tree(state: TreeState) -> None:
    """Store the state a blocked tree closed with: an operator's retry continues from it (ruling D4)."""
    raise NotImplementedError


@activity.defn
async def request_cancel() -> None:
    """Have the server cancel the calling workflow: only then can it close as cancelled."""
    raise NotImplementedError


@activity.defn
async def is_child(workflow_id: str) -> bool:
    """Return whether a workflow is a child of the calling workflow, or of an earlier run of it before a reset."""
    raise NotImplementedError


class Closed(Wire):
    """One run of a workflow that was ended from outside."""

    workflow_id: str
    run_id: str


@activity.defn
async def how_it_closed(closed: Closed) -> str:
    """Ask Temporal who ended a leg's workflow, and why."""
    raise NotImplementedError


async def why_terminated(workflow_id: str, run_id: str) -> str:
    """Return who ended a leg's workflow and why; empty if Temporal does not answer in time."""
    closed, patience = Closed(workflow_id=workflow_id, run_id=run_id), timedelta(seconds=30)
    with suppress(ActivityError):
        return await workflow.execute_activity(
            how_it_closed, closed, schedule_to_close_timeout=patience, summary=f"ask the server who ended {workflow_id}"
        )
    return ""


def agents_queue(host: str) -> str:
    """Return the task queue of the host that owns a checkout."""
    return f"agents-{host}"


async def attempt(run: JobRun, host: str, summary: str, moves: Moves, *, placed: bool = False) -> JobOutcome:
    """Run one attempt; every failure is an outcome too."""
    try:
        wanted = _wanted(run, host)
        outcome = await on_a_host(run_job, run, wanted, moves, placed=placed, summary=summary)
        return of_this_attempt(outcome, run)
    except Moved as moved:
        return of_this_attempt(JobOutcome.model_validate(moved.outcome), run)
    except TakenBack:
        reason = "taken back before it began"
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED, reason=reason)
    except (ActivityError, ApplicationError) as error:
        state = JobState.CANCELLED if is_cancelled_exception(error) or _given_up(error) else JobState.FAILED
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=why(error))


def _wanted(run: JobRun, host: str) -> Wanted:
    """Return what a job needs of its host.

    A coordinator prefers its tree's host, where its session is. Legs that share a worktree need it.
    """
    worker, own = run.assignment.worker, (f"{NAMED}{host}",)
    coordinates = run.delegation_id is None or run.continuation is not Continuation.NONE
    return Wanted(
        offer=Offer(job_id=run.job_id, attempt=run.attempt, offer=run.offer),
        root=run.root_job_id,
        repo=run.repo,
        runtime=worker.runtime,
        agent="" if worker.ephemeral else worker.name,
        host=host,
        require=(*run.require, *(own if run.shared_worktree else ())),
        prefer=(*run.prefer, *(own if coordinates else ())),
    )


def of_this_attempt(outcome: JobOutcome, run: JobRun) -> JobOutcome:
    """Check an outcome's job and attempt: a valid seal proves only the workflow it was written for (N1)."""
    if (outcome.job_id, outcome.attempt) == (run.job_id, run.attempt):
        return outcome
    reason = f"the outcome that came back is of {outcome.job_id}, attempt {outcome.attempt}: it is rejected"
    return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.FAILED, reason=reason)


async def on_a_host(work: Callable[[R], T], run: R, wanted: Wanted, moves: Moves, *, placed: bool, summary: str) -> T:
    """Run one attempt on the host that is chosen for it (ruling Q4), or without placement on its tree's."""
    host = await find_host(wanted) if placed else wanted.host
    summary = summary_line(summary, f"on {host}") if placed else summary
    return await on_host(work, run, wanted.offer, moves, host=host, fairness=wanted.root, summary=summary)


async def find_host(wanted: Wanted) -> str:
    """Return the host that is chosen for an attempt, once a host can run it. Raise `TakenBack` on cancellation."""
    job = wanted.offer.job_id
    try:
        try:
            return await workflow.execute_local_activity(
                place, wanted, summary=f"choose a host for {job}", **LOCAL_PLACE
            )
        except (ActivityError, ApplicationError) as error:
            if not _is(error, WAITS):
                raise
        return await workflow.execute_activity(
            place,
            wanted,
            start_to_close_timeout=LOCAL_PLACE["start_to_close_timeout"],
            retry_policy=PLACE_RETRIES,
            summary=f"wait for a host that can run {job}",
        )
    except (asyncio.CancelledError, ActivityError) as error:
        if is_cancelled_exception(error):
            raise TakenBack from error
        raise


def _is(error: ActivityError | ApplicationError, kind: str) -> bool:
    """Return whether an activity failed with an error of this type. Errors of local activities have no wrapper."""
    cause = error.cause if isinstance(error, ActivityError) else error
    return isinstance(cause, ApplicationError) and cause.type == kind


async def on_host(
    work: Callable[[R], T], run: R, offer: Offer, moves: Moves, *, host: str, fairness: str, summary: str
) -> T:
    """Run one attempt on its host; raise `TakenBack` if it was cancelled before it began there, `Moved` if it moves."""
    started = workflow.start_activity(
        work,
        run,
        task_queue=agents_queue(host),
        start_to_close_timeout=FOREVER,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RUN_RETRIES,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        priority=Priority(fairness_key=fairness[:64]),
        summary=summary,
    )
    return await unless_taken_back(unless_moved(started, offer, moves, host), started, offer)


class Moved(Exception):  # noqa: N818
    """The attempt was given up because its host is lost or drained."""

    def __init__(self, outcome: dict[str, Any]) -> None:
        super().__init__()
        self.outcome = outcome


async def unless_moved(work: ActivityHandle[T], offer: Offer, moves: Moves, host: str) -> T:
    """Return the result of an activity on a host. Raise `Moved` if the attempt was given up."""
    while isinstance(ended := await moves.result(work, (offer.job_id, offer.attempt), host), Move):
        deciding = workflow.execute_local_activity(
            give_up, GiveUp(offer=offer, move=ended), summary=f"offer {offer.job_id} elsewhere: {ended.reason}", **LOCAL
        )
        left = await asyncio.shield(deciding)
        if left.outcome is not None:
            abandon(work)
            raise Moved(left.outcome)
    return ended


def abandon(work: ActivityHandle[T]) -> None:
    """Cancel an activity, and don't wait for its end."""
    work.cancel()
    work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


class TakenBack(Exception):  # noqa: N818
    """The attempt was cancelled before its host had begun it: it never ran, and there is nothing to wait for."""


async def unless_taken_back(result: Awaitable[T], work: ActivityHandle[T], offer: Offer) -> T:
    """Return the result of an activity on a host. On cancellation, withdraw its offer if not begun, else stop
    it (B5).
    """
    try:
        return await result
    except asyncio.CancelledError:
        if work.done():
            raise
    claim = await ask_back(offer)
    if claim.begun_at is not None:
        work.cancel()
        return await work
    abandon(work)
    raise TakenBack


async def ask_back(offer: Offer) -> Claim:
    """Request that an offer is taken back. Return the claim, which says when its host had begun the job, if it had."""
    return await workflow.execute_local_activity(
        take_back, offer, summary=f"take {offer.job_id} back, unless its host has begun it", **LOCAL
    )


def refusal(error: ActivityError | ApplicationError) -> str:
    """Return the reason of a permanent refusal; raise any other failure again. Errors of local activities have no
    wrapper.
    """
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ApplicationError) and cause.type == REFUSED:
        return cause.message or "no reason given"
    raise error


def never(what: str, why_not: str) -> ApplicationError:
    """Return the error that fails the workflow when the store refuses even the shortest row; people see its message."""
    hint = "the store's rows are not what this workflow needs; see the worker's log, then: service doctor"
    return ApplicationError(f"the store refuses {what}: {why_not} ({hint})", type=REFUSED, non_retryable=True)


async def write(records: Records) -> Written:
    """Write rows in a local activity: one event in the history, no round trip.

    An unavailable store is retried. A permanent refusal is returned with its reason (ruling B6).
    """
    try:
        written = await workflow.execute_local_activity(
            writer_of(records), records, result_type=Written, summary=wrote(records), **LOCAL
        )
    except (ActivityError, ApplicationError) as error:
        return Written(refused=refusal(error))
    return written or Written()


def writer_of(records: Records) -> str:
    """Return the activity's name for these rows, after their most significant event."""
    told = {each.kind for each in records.events}
    return next((f"record {kind.value}" for kind in NAMING if kind in told), "record")


ORDER = "record"
"""The activity that orders queue behind; local activities write the rows."""


async def mark(summary: str) -> None:
    """Run a no-op activity that ends the current workflow task."""
    await workflow.execute_activity(
        ORDER,
        Records(),
        start_to_close_timeout=timedelta(seconds=5),  # an order must not wait long for a dead worker
        retry_policy=RECORD_RETRIES,
        summary=summary,
    )


async def keep(state: TreeState) -> None:
    """Store the state of a tree that may be re-opened."""
    try:
        await workflow.execute_local_activity(
            keep_tree, state, summary="keep the state of this blocked tree, for a retry", **LOCAL
        )
    except (ActivityError, ApplicationError) as error:
        raise never("the state of this blocked tree, which could not be opened again", refusal(error)) from error


def _given_up(error: ActivityError | ApplicationError) -> bool:
    """Return whether a cancellation met a run between retries, which the server then reports as a failed wait."""
    retry = error.retry_state if isinstance(error, ActivityError) else None
    return _is(error, WAITS) and retry is RetryState.CANCEL_REQUESTED


def why(error: ActivityError | ApplicationError) -> str:
    """Return why a host's run has failed without an outcome of its own."""
    match error.cause if isinstance(error, ActivityError) else error:
        case ApplicationError(type=kind, message=message) if kind == WAITS:
            return f"stopped on order while it {message}" if _given_up(error) else message
        case TemporalTimeoutError(type=kind):
            return f"the host did not report back in time ({kind.name.lower() if kind else 'timeout'})"
        case ApplicationError(type="PayloadsTooLarge"):
            return "the outcome was too large to report"
        case ApplicationError(type=kind, message=message) if kind == REFUSED:
            return (
                f"the store refuses what the run has to write: {message} (see the worker's log, then: service doctor)"
            )
        case ApplicationError(message=message, type=kind):
            return f"the run could not be carried out: {kind}: {message}"
        case cause:
            return "cancelled" if is_cancelled_exception(error) else f"the run could not be carried out: {cause}"
