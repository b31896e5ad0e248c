"""The activities that workflows call: their names and types. The side effects live in `activities`."""

import asyncio
from datetime import timedelta
from typing import TypeVar

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeoutError
from temporalio.workflow import ActivityHandle

from workflows.tree.jobs import JobOutcome, JobRun, JobState, Wire
from workflows.tree.records import Records, Written
from workflows.tree.state import TreeState
from workflows.tree.view import wrote

T = TypeVar("T")

FOREVER = timedelta(days=365)
"""A run may wait for its place for any time; its own timeout counts from its begin, and is its supervisor's."""

HEARTBEAT = timedelta(seconds=15)
"""How long a host may be silent before its runs are offered to it again: it re-attaches, it does not repeat."""

WAITS = "RuntimeWaits"
"""The error type by which a run asks to be called again when its program can work."""

RUN_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=100,
    non_retryable_error_types=["PayloadsTooLarge"],
)
RECORD_RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30))


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
    """Whose an offer is: its host's, which has begun it, or nobody's any more."""

    begun_at: float | None = None


@activity.defn
def take_back(offer: Offer) -> Claim:
    """Have an offer back that its host has not begun; then it never will (ruling B5)."""
    raise NotImplementedError


@activity.defn
def record(records: Records) -> Written | None:
    """Write rows of the read model; writing them again changes nothing."""
    raise NotImplementedError


@activity.defn
def deliver(notification_id: str) -> None:
    """Deliver a notification on every channel it has not arrived on; fails while one is left."""
    raise NotImplementedError


@activity.defn
def keep_tree(state: TreeState) -> None:
    """Keep the state a blocked tree closed with: an operator's retry goes on from it (ruling D4)."""
    raise NotImplementedError


def agents_queue(host: str) -> str:
    """The task queue of the host that owns a checkout."""
    return f"agents-{host}"


async def attempt(run: JobRun, host: str) -> JobOutcome:
    """Run one attempt; whatever goes wrong on the way is an outcome too."""
    work = workflow.start_activity(
        run_job,
        run,
        task_queue=agents_queue(host),
        start_to_close_timeout=FOREVER,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RUN_RETRIES,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        priority=Priority(fairness_key=run.root_job_id),
        summary=f"{run.action} - attempt {run.attempt}",
    )
    try:
        return await unless_taken_back(work, Offer(job_id=run.job_id, attempt=run.attempt, offer=run.offer))
    except TakenBack:
        reason = "taken back before it began"
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED, reason=reason)
    except ActivityError as error:
        state = JobState.CANCELLED if is_cancelled_exception(error) or _given_up(error) else JobState.FAILED
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=why(error))


class TakenBack(Exception):  # noqa: N818
    """It was cancelled before its host had begun it: nothing of it ever ran, nothing is waited for."""


async def unless_taken_back(work: ActivityHandle[T], offer: Offer) -> T:
    """What a host's run comes to. Cancelled, it is taken back if that is still possible, else stopped (ruling B5)."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if work.done():
            raise
    claim = await ask_back(offer)
    work.cancel()
    if claim.begun_at is not None:
        return await work
    work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody waits for its end
    raise TakenBack


async def ask_back(offer: Offer) -> Claim:
    """Whose it is from now on."""
    return await workflow.execute_local_activity(
        take_back,
        offer,
        start_to_close_timeout=timedelta(seconds=60),
        retry_policy=RECORD_RETRIES,
        summary=f"take {offer.job_id} back",
    )


async def write(records: Records) -> Written:
    """Write rows from inside the workflow's own task: one event in the history, no round trip."""
    written = await workflow.execute_local_activity(
        record,
        records,
        start_to_close_timeout=timedelta(seconds=60),
        retry_policy=RECORD_RETRIES,
        summary=wrote(records),
    )
    return written or Written()


async def turn(summary: str) -> None:
    """Writes nothing; what follows it has a place of its own in the history."""
    await workflow.execute_activity(
        record,
        Records(),
        start_to_close_timeout=timedelta(seconds=5),  # an order must not wait long for a worker that died with it
        retry_policy=RECORD_RETRIES,
        summary=summary,
    )


async def keep(state: TreeState) -> None:
    """Keep the state of a tree that may be re-opened."""
    await workflow.execute_local_activity(
        keep_tree,
        state,
        start_to_close_timeout=timedelta(seconds=60),
        retry_policy=RECORD_RETRIES,
        summary="the state it is blocked in, for a retry",
    )


def _given_up(error: ActivityError) -> bool:
    """A cancellation that met a run as it was put off: the server then gives the wait as its failure."""
    waits = isinstance(error.cause, ApplicationError) and error.cause.type == WAITS
    return waits and error.retry_state is RetryState.CANCEL_REQUESTED


def why(error: ActivityError) -> str:
    """Why a run has no outcome of its own."""
    match error.cause:
        case ApplicationError(type=kind, message=message) if kind == WAITS:
            return f"stopped on order while it {message}" if _given_up(error) else message
        case TemporalTimeoutError(type=kind):
            return f"the host did not report back in time ({kind.name.lower() if kind else 'timeout'})"
        case ApplicationError(type="PayloadsTooLarge"):
            return "the outcome was too large to report"
        case ApplicationError(message=message, type=kind):
            return f"the run could not be carried out: {kind}: {message}"
        case cause:
            return "cancelled" if is_cancelled_exception(error) else f"the run could not be carried out: {cause}"
