"""How our workflows close: Temporal's own lists tell at a glance what became of each (Failed, Canceled, Completed).

A workflow that fails carries its outcome in the failure's details. One that is cancelled can carry nothing, so it
says its outcome to its parent by the signal `outcome` before it closes.
"""

from contextlib import suppress
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    ChildWorkflowError,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from workflows.messages import Outcome
    from workflows.tree.jobs import Wire

W = TypeVar("W", bound=Wire)


async def close(outcome: W, state: str, reason: str) -> W:
    """The outcome of a workflow that ended well; any other ends it as what it is, with the reason as its message."""
    if state in {"succeeded", "done"}:
        return outcome
    if state == "cancelled":
        await _tell_parent(outcome)
        raise _cancelled(reason)
    raise ApplicationError(
        reason or state,
        outcome,
        type=state.capitalize(),
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN,
    )


def outcome_in(error: BaseException | None, kind: type[W], told: Outcome | None) -> W | None:
    """What a child that did not complete has left; None when it was ended from outside, or never began."""
    cause = error.cause if isinstance(error, ChildWorkflowError) else None
    if isinstance(cause, ApplicationError) and cause.details and cause.type in {"Failed", "Blocked"}:
        return kind.model_validate(cause.details[0])
    if told is not None and is_cancelled_exception(error or Exception()):
        return kind.model_validate(told.value)
    return None


async def _tell_parent(outcome: Wire) -> None:
    info = workflow.info()
    if info.parent is None:
        return
    parent = workflow.get_external_workflow_handle(info.parent.workflow_id, run_id=info.parent.run_id)
    with suppress(ApplicationError):  # it may have ended before
        await parent.signal("outcome", Outcome(workflow_id=info.workflow_id, value=outcome.model_dump(mode="json")))


def _cancelled(reason: str) -> CancelledError:
    """The SDK closes a workflow as cancelled only where the server had asked for it; our own orders count as well."""
    runtime = workflow._Runtime.current()
    if workflow.cancellation_reason() is None:
        runtime._cancel_reason = reason  # type: ignore[attr-defined]
    return CancelledError(reason)
