"""How workflows close, so that Temporal's own lists show the outcome (Failed, Canceled, Completed).

A workflow that fails has its outcome in the failure's details. A cancelled workflow has no such place, so it sends its
outcome to its parent by the signal `outcome` before it closes.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    ChildWorkflowError,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from workflows.model.wire import Wire
    from workflows.temporal import calls
    from workflows.temporal.event_loop import end_on_eviction
    from workflows.temporal.messages import Outcome

W = TypeVar("W", bound=Wire)


async def close(outcome: W, state: str, reason: str, *, tells: bool = False) -> W:
    """Return the outcome of a workflow that succeeded; otherwise raise, so that Temporal shows it as cancelled or
    failed.

    With `tells`, send the outcome to the parent by signal too: a parent that was reset does not learn of the end of a
    child that it took up.
    """
    if tells or state == "cancelled":
        await _tell_parent(outcome)
    if state in {"succeeded", "done"}:
        return outcome
    if state == "cancelled":
        await _ask_for_cancel()
        raise CancelledError(reason)
    raise ApplicationError(
        reason or state,
        outcome,
        type=state.capitalize(),
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN,
    )


@dataclass(frozen=True)
class Lost:
    """A workflow's end without an outcome: it was terminated, cancelled before it began, or never started."""

    cancelled: bool
    reason: str


def end_without_outcome(task: asyncio.Task[Any]) -> Lost | None:
    """Return the failure of a finished task; None if it has a result."""
    if task.cancelled():
        return Lost(cancelled=True, reason="its workflow ended without an outcome: it was cancelled before it began")
    if (error := task.exception()) is None:
        return None
    reason = f"its workflow ended without an outcome: {error.__cause__ or error}"
    return Lost(cancelled=is_cancelled_exception(error), reason=reason)


def outcome_in(error: BaseException | None, kind: type[W], sent: Outcome | None) -> W | None:
    """Return the outcome of a child that did not complete; None if the child was ended from outside, or never began."""
    cause = error.cause if isinstance(error, ChildWorkflowError) else None
    if isinstance(cause, ApplicationError) and cause.details and cause.type in {"Failed", "Blocked"}:
        return kind.model_validate(cause.details[0])
    if sent is not None and is_cancelled_exception(error or Exception()):
        return kind.model_validate(sent.value)
    return None


async def _tell_parent(outcome: Wire) -> None:
    info = workflow.info()
    if info.parent is None:
        return
    parent = workflow.get_external_workflow_handle(info.parent.workflow_id)  # its run of now: it may have been reset
    with suppress(ApplicationError):  # it may have ended before
        await parent.signal("outcome", Outcome(workflow_id=info.workflow_id, value=outcome.model_dump(mode="json")))


async def _ask_for_cancel() -> None:
    """Request the cancellation of this workflow: it can close as cancelled only after such a request."""
    try:
        if workflow.cancellation_reason() is None:
            await workflow.execute_local_activity(
                calls.request_cancel, summary="ask the server to close this as cancelled", **calls.LOCAL
            )
            await workflow.wait_condition(lambda: workflow.cancellation_reason() is not None)
    except asyncio.CancelledError:
        end_on_eviction()
