"""The activities that workflows call: names, types, task queues, timeouts, retries. `activities` implements them.

`attempts` calls the activities of hosts, `writes` those of the store; `placing` and `moving` define their own.
"""

from contextlib import suppress
from datetime import timedelta
from typing import TypedDict

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import StopReason
from workflows.model.wire import Wire
from workflows.tree.state import TreeMemory

FOREVER = timedelta(days=365)
"""The timeout of an attempt's activity. It may wait for a free slot for any time; the attempt's own timeout starts with
its program, and its supervisor enforces it.
"""

HEARTBEAT = timedelta(seconds=30)
"""The heartbeat timeout. After it, the server offers an attempt to its host again; the host re-attaches to the running
program instead of starting it twice. A starting worker need not wait that long: `activities.takeover` has the attempts
of a dead worker offered again at once.
"""

TASK_TIMEOUT = timedelta(seconds=4)
"""The timeout of a workflow task, and so the delay after the death of a worker. A task takes some milliseconds; if it
waits for the store, it sends heartbeats. A task that takes longer is repeated.
"""

WAITS = "RuntimeWaits"
"""The error type of an attempt that is retried until its program can work."""

REFUSED = "StoreRefused"
"""The error type of a write that can never succeed, so it is not retried (ruling B6)."""

RUN_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=100,
    non_retryable_error_types=["PayloadsTooLarge"],
)
RECORD_RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30))


class Local(TypedDict):
    """The options of local activities that write to the store."""

    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy


LOCAL: Local = {"start_to_close_timeout": timedelta(seconds=60), "retry_policy": RECORD_RETRIES}


@activity.defn
def run_job(run: JobRun) -> JobOutcome:
    """Run one attempt of a job to its end, on its host."""
    raise NotImplementedError


class OfferKey(Wire):
    """One offer of one attempt of a job or a stage."""

    job_id: str
    attempt: int
    offer: int = 1


class OfferClaim(Wire):
    """The claim on an offer: when a host began the attempt, or None if the offer was taken back."""

    begun_at: float | None = None


@activity.defn
def take_back(offer: OfferKey) -> OfferClaim:
    """Withdraw an offer. If a host has begun the job, the job keeps running; otherwise no host can begin it afterwards
    (B5).
    """
    raise NotImplementedError


class CallOff(Wire):
    """An order to end the attempt of an offer, begun or not, with the reason."""

    offer: OfferKey
    why: StopReason


@activity.defn
def call_off(order: CallOff) -> OfferClaim:
    """Withdraw an offer. If a host has begun the attempt, order the host to stop it (ruling G2.stops)."""
    raise NotImplementedError


@activity.defn
def deliver(notification_id: str) -> None:
    """Deliver a notification on every pending channel; fail while any is still pending."""
    raise NotImplementedError


@activity.defn
def keep_tree(state: TreeMemory) -> None:
    """Store the state in which a blocked tree closed: an operator's retry continues from it (ruling D4)."""
    raise NotImplementedError


@activity.defn
async def request_cancel() -> None:
    """Ask the server to cancel the calling workflow: only then can the workflow close as cancelled."""
    raise NotImplementedError


@activity.defn
async def is_child(workflow_id: str) -> bool:
    """Return whether a workflow is a child of the calling workflow, or of a run of it before a reset."""
    raise NotImplementedError


class Closed(Wire):
    """One run of a workflow that was ended from outside."""

    workflow_id: str
    run_id: str


@activity.defn
async def how_it_closed(closed: Closed) -> str:
    """Ask Temporal who ended a leg's workflow from outside, and why."""
    raise NotImplementedError


def cause_of(error: ActivityError | ApplicationError) -> BaseException | None:
    """Return the error that made an activity fail. Errors of local activities have no wrapper."""
    return error.cause if isinstance(error, ActivityError) else error


def is_of_type(error: ActivityError | ApplicationError, kind: str) -> bool:
    """Return whether an activity failed with an error of this type."""
    cause = cause_of(error)
    return isinstance(cause, ApplicationError) and cause.type == kind


async def termination_reason(workflow_id: str, run_id: str) -> str:
    """Return who ended a leg's workflow and why; empty if Temporal does not answer in time."""
    closed, patience = Closed(workflow_id=workflow_id, run_id=run_id), timedelta(seconds=30)
    with suppress(ActivityError):
        return await workflow.execute_activity(
            how_it_closed, closed, schedule_to_close_timeout=patience, summary=f"ask the server who ended {workflow_id}"
        )
    return ""


def agents_queue(host: str) -> str:
    """Return the task queue from which a host takes attempts."""
    return f"agents-{host}"
