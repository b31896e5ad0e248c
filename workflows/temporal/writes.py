"""Writes of workflows to the store: their rows, in local activities, and the state of a blocked tree."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import cast

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError

from workflows.model.event_kinds import EventKind
from workflows.model.rows import Records, Written
from workflows.temporal.calls import LOCAL, RECORD_RETRIES, REFUSED, cause_of, keep_tree
from workflows.tree.details import wrote
from workflows.tree.state import TreeMemory

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
"""The events that may name a write, most significant first. Histories contain these names: if kinds were added here,
waiting trees could not continue.
"""

WRITERS = ("record", *(f"record {kind.value}" for kind in NAMING))
"""The names of the one activity that writes rows of the read model.

Each call uses the name of the event that it records, since the web UI's timeline shows only the names of local
activities.
"""

Writer = Callable[[Records], Written | None] | Callable[[Records], Awaitable[Written | None]]


def writers(write: Writer) -> list[Callable[..., object]]:
    """Return the activity that writes rows, under each of its names."""
    return [_named_writer(name, write) for name in WRITERS]


def _named_writer(name: str, write: Writer) -> Callable[..., object]:
    """Return the activity under a name. It is a coroutine function if `write` is one."""

    @activity.defn(name=name)
    def record(records: Records) -> Written | None:
        return cast("Written | None", write(records))

    @activity.defn(name=name)
    async def record_async(records: Records) -> Written | None:
        return await cast("Awaitable[Written | None]", write(records))

    return record_async if iscoroutinefunction(write) else record


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
    """Return the name of the activity that writes these rows, after their most significant event."""
    kinds = {event.kind for event in records.events}
    return next((f"record {kind.value}" for kind in NAMING if kind in kinds), "record")


ORDER = "record"
"""The name of the activity that puts an order behind all earlier events. Rows are written by local activities."""


async def mark(summary: str) -> None:
    """Run a no-op activity that ends the current workflow task."""
    await workflow.execute_activity(
        ORDER,
        Records(),
        start_to_close_timeout=timedelta(seconds=5),  # an order must not wait long for a dead worker
        retry_policy=RECORD_RETRIES,
        summary=summary,
    )


async def keep(state: TreeMemory) -> None:
    """Store the state of a tree that may be re-opened."""
    try:
        await workflow.execute_local_activity(
            keep_tree, state, summary="keep the state of this blocked tree, for a retry", **LOCAL
        )
    except (ActivityError, ApplicationError) as error:
        raise never("the state of this blocked tree, which could not be opened again", refusal(error)) from error


def refusal(error: ActivityError | ApplicationError) -> str:
    """Return why the store refuses a write permanently; raise the error again if it is another one."""
    cause = cause_of(error)
    if isinstance(cause, ApplicationError) and cause.type == REFUSED:
        return cause.message or "no reason given"
    raise error


def never(what: str, why_not: str) -> ApplicationError:
    """Return the error that fails the workflow if the store refuses even the shortest rows; people see its message."""
    hint = "the store's rows are not what this workflow needs; see the worker's log, then: service doctor"
    return ApplicationError(f"the store refuses {what}: {why_not} ({hint})", type=REFUSED, non_retryable=True)
