"""The activities that workflows call: their names and types. The side effects live in `activities`."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeoutError

from workflows.tree.jobs import JobOutcome, JobRun, JobState
from workflows.tree.records import Records
from workflows.tree.state import TreeState

FOREVER = timedelta(days=365)
HEARTBEAT = timedelta(seconds=15)
"""How long a host may be silent before its runs are offered to it again: it re-attaches, it does not repeat."""

MARGIN = timedelta(minutes=10)
"""What a run may take beyond its own deadline: the stop ladder, observing the worktree, recording the end."""

WAITS = "RuntimeWaits"
"""The error type by which a run asks to be called again when its program can work."""

REFUSED = "StoreRefused"
"""The error type by which a write says that it can never succeed: it is not tried again (ruling B6)."""

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


@activity.defn
def record(records: Records) -> None:
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
    deadline = timedelta(seconds=run.timeout_seconds) * 2 + MARGIN if run.timeout_seconds else FOREVER
    try:
        return await workflow.execute_activity(
            run_job,
            run,
            task_queue=agents_queue(host),
            start_to_close_timeout=deadline,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RUN_RETRIES,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            priority=Priority(fairness_key=run.root_job_id),
            summary=f"{run.action} - attempt {run.attempt}",
        )
    except ActivityError as error:
        state = JobState.CANCELLED if is_cancelled_exception(error) or _given_up(error) else JobState.FAILED
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=why(error))


async def write(records: Records) -> str:
    """Write rows from inside the workflow's own task: one event in the history, no round trip.

    A store that cannot take them now is waited for. Why it never will is the answer, empty when they are written.
    """
    try:
        await workflow.execute_local_activity(
            record, records, start_to_close_timeout=timedelta(seconds=60), retry_policy=RECORD_RETRIES
        )
    except (ActivityError, ApplicationError) as error:
        return refusal(error)
    return ""


def refusal(error: ActivityError | ApplicationError) -> str:
    """Why the store will never take it; other failures go on. A local activity's comes as it was raised."""
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ApplicationError) and cause.type == REFUSED:
        return cause.message or "no reason given"
    raise error


def never(what: str, why_not: str) -> ApplicationError:
    """What a workflow fails with when the store will not even take the shortest row: its message is what people see."""
    hint = "the store's rows are not what this workflow needs; see the worker's log, then: service doctor"
    return ApplicationError(f"the store refuses {what}: {why_not} ({hint})", type=REFUSED, non_retryable=True)


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
    try:
        await workflow.execute_local_activity(
            keep_tree, state, start_to_close_timeout=timedelta(seconds=60), retry_policy=RECORD_RETRIES
        )
    except (ActivityError, ApplicationError) as error:
        raise never("the state of this blocked tree, which could not be opened again", refusal(error)) from error


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
