"""Attempts of jobs and stages. Each gets a host, which runs it and may be lost meanwhile (rulings Q4, B5, Q5).

The store decides whether an attempt has begun on its host, moves to another host, or is taken back.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutType, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeoutError
from temporalio.workflow import ActivityHandle

from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import StopReason
from workflows.model.states import Continuation, JobState
from workflows.policy.placement import NAMED
from workflows.temporal import calls
from workflows.temporal.calls import LOCAL, REFUSED, WAITS, CallOff, OfferClaim, OfferKey
from workflows.temporal.event_loop import end_on_eviction
from workflows.temporal.moving import Moved, Moves, abandon
from workflows.temporal.placing import Unplaced, choose_host
from workflows.text.markdown import summary_line

CALLED_OFF = "stops-are-ordered-apart"
"""A patch: in earlier releases, one activity both took an offer back and ordered a begun attempt to stop."""
STOPPED_AGAIN = "stops-outlive-their-worker"
"""A patch: in earlier releases, an attempt failed, and ran on, if the call that stopped it failed."""
STOPPED_THOUGH_CANCELLED = "stops-outlive-a-cancelled-call"
"""A patch: in earlier releases, an attempt ran on if its call was cancelled while the server waited to repeat it."""

R = TypeVar("R")
T = TypeVar("T")


async def run_job(run: JobRun, host: str, summary: str, moves: Moves, *, placed: bool = False) -> JobOutcome:
    """Run one attempt of a job, and return its outcome; every failure is an outcome too."""
    try:
        outcome = await on_host(calls.run_job, run, _needs_of(run, host), moves, placed=placed, summary=summary)
        return of_this_attempt(outcome, run)
    except Moved as moved:
        return of_this_attempt(JobOutcome.model_validate(moved.outcome), run)
    except TakenBack:
        reason = "taken back before it began"
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED, reason=reason)
    except (ActivityError, ApplicationError) as error:
        state = JobState.CANCELLED if is_cancelled_exception(error) or _given_up(error) else JobState.FAILED
        return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=why(error))


def _needs_of(run: JobRun, host: str) -> Unplaced:
    """Return what a job requires of its host.

    A coordinator prefers its tree's host, where its session is. Legs that share a worktree require that host.
    """
    worker, own = run.assignment.worker, (f"{NAMED}{host}",)
    coordinates = run.delegation_id is None or run.continuation is not Continuation.NONE
    return Unplaced(
        offer=OfferKey(job_id=run.job_id, attempt=run.attempt, offer=run.offer),
        root=run.root_job_id,
        repo=run.repo,
        runtime=worker.runtime,
        agent="" if worker.ephemeral else worker.name,
        host=host,
        require=(*run.require, *(own if run.shared_worktree else ())),
        prefer=run.prefer,
        near=host if coordinates else "",
    )


def of_this_attempt(outcome: JobOutcome, run: JobRun) -> JobOutcome:
    """Return the outcome if it belongs to this job and attempt, else a failure. A valid seal proves only for which
    workflow a payload was written (N1).
    """
    if (outcome.job_id, outcome.attempt) == (run.job_id, run.attempt):
        return outcome
    reason = f"the outcome that came back is of {outcome.job_id}, attempt {outcome.attempt}: it is rejected"
    return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.FAILED, reason=reason)


async def on_host(work: Callable[[R], T], run: R, needs: Unplaced, moves: Moves, *, placed: bool, summary: str) -> T:
    """Run one attempt's activity on the host chosen for it, or, without placement, on the host of its tree.

    Raise `TakenBack` if the attempt was cancelled before it began, and `Moved` if its job continues on another host.
    """
    host = needs.host
    if placed:
        host = await _chosen_host(needs)
        summary = summary_line(summary, f"on {host}")

    def call(within: timedelta | None = None) -> ActivityHandle[T]:
        return workflow.start_activity(
            work,
            run,
            task_queue=calls.agents_queue(host),
            start_to_close_timeout=calls.FOREVER,
            schedule_to_start_timeout=within,
            heartbeat_timeout=calls.HEARTBEAT,
            retry_policy=calls.RUN_RETRIES,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            priority=Priority(fairness_key=needs.root[:64]),
            summary=summary,
        )

    started = call()
    return await _unless_taken_back(moves.result(started, needs.offer, host), started, needs.offer, call)


async def _chosen_host(needs: Unplaced) -> str:
    try:
        return await choose_host(needs)
    except (asyncio.CancelledError, ActivityError) as error:
        end_on_eviction()
        if is_cancelled_exception(error):
            raise TakenBack from error
        raise


class TakenBack(Exception):  # noqa: N818
    """The attempt was cancelled before its host had begun it, so it never ran and never will."""


async def _unless_taken_back(
    result: Awaitable[T], work: ActivityHandle[T], offer: OfferKey, call: Callable[[timedelta], ActivityHandle[T]]
) -> T:
    """Return the result of an activity on a host. When cancelled, take the attempt's offer back, or stop the attempt if
    it has begun.

    If the call ends without an outcome, because its worker died or the store is away, the host is called again: it
    finds the order to stop. The server repeats no call that was cancelled, and ends at once one that waits for a retry.
    """
    try:
        return await result
    except asyncio.CancelledError:
        end_on_eviction()
        if work.done():
            raise
    ordered = workflow.patched(CALLED_OFF)
    claim = await (_call_off(offer) if ordered else take_back(offer))
    if claim.begun_at is not None:
        work.cancel()
        try:
            return await work
        except ActivityError as error:
            if not (ordered and _may_run_on(error)):
                raise
        return await call(calls.HEARTBEAT)
    abandon(work)
    raise TakenBack


async def take_back(offer: OfferKey) -> OfferClaim:
    """Take an offer back. Return its claim, which says since when a host runs the attempt, if one does."""
    return await workflow.execute_local_activity(
        calls.take_back, offer, summary=f"take {offer.job_id} back, unless its host has begun it", **LOCAL
    )


async def _call_off(offer: OfferKey) -> OfferClaim:
    """End an attempt whose wait was cancelled. Return the claim on its offer, like `take_back`."""
    return await workflow.execute_local_activity(
        calls.call_off,
        CallOff(offer=offer, why=StopReason.CANCELLED),
        summary=f"take {offer.job_id} back, or have its host stop it",
        **LOCAL,
    )


def _may_run_on(error: ActivityError) -> bool:
    """Return whether a call that was to stop an attempt may have ended without that."""
    if is_cancelled_exception(error):
        return workflow.patched(STOPPED_THOUGH_CANCELLED)
    return _was_lost(error) and workflow.patched(STOPPED_AGAIN)


def _was_lost(error: ActivityError) -> bool:
    """Return whether the server would have repeated a call if it had not been cancelled."""
    timed_out = isinstance(error.cause, TemporalTimeoutError) and error.cause.type is TimeoutType.HEARTBEAT
    failed = isinstance(error.cause, ApplicationError) and error.retry_state is RetryState.CANCEL_REQUESTED
    return timed_out or (failed and not _given_up(error))


def _given_up(error: ActivityError | ApplicationError) -> bool:
    """Return whether an activity was cancelled while it waited for a retry: the server then reports that as a
    failure.
    """
    retry = error.retry_state if isinstance(error, ActivityError) else None
    return calls.is_of_type(error, WAITS) and retry is RetryState.CANCEL_REQUESTED


def why(error: ActivityError | ApplicationError) -> str:
    """Return why an activity on a host failed without an outcome."""
    match calls.cause_of(error):
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
