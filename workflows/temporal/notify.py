"""Notifications of people. Each event has its own workflow, which outlives its tree and retries for days."""

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from workflows.model.event_kinds import TELLS_PEOPLE, EventKind
    from workflows.model.rows import Records, shift_event
    from workflows.temporal import calls
    from workflows.text.markdown import summary_line

FINALIZED_TELLS = "finalized-tells"
"""A patch that histories of 0.2.0 may carry."""
CUT_SHORT_TELLS = "cut-short-tells"
"""A patch: trees of earlier releases recorded no event when they were cut short, and must notify nobody of it in a
replay.
"""

PATIENCE = timedelta(days=7)
_RETRIES = RetryPolicy(initial_interval=timedelta(seconds=2), maximum_interval=timedelta(minutes=10))


@workflow.defn
class Notify:
    """Delivers one notification on every channel. The workflow has the notification's id, so that it is delivered
    once.
    """

    @workflow.run
    async def run(self, notification_id: str) -> None:
        await workflow.execute_activity(
            calls.deliver,
            notification_id,
            start_to_close_timeout=timedelta(minutes=2),
            heartbeat_timeout=calls.HEARTBEAT,
            schedule_to_close_timeout=PATIENCE,
            retry_policy=_RETRIES,
            summary=f"tell people of {notification_id}, on every channel",
        )


async def tell_people(rows: Records, shift: int) -> None:
    """Start a notification workflow for each event that people are told of. It is named after the event's id, so each
    is sent once.
    """
    for event in (event for event in rows.events if event.kind in TELLS_PEOPLE):
        if event.kind == EventKind.TASK_BLOCKED and not event.data.get("retry"):  # a finalize that ended badly
            workflow.deprecate_patch(FINALIZED_TELLS)
        if event.kind == EventKind.TREE_CUT_SHORT and not workflow.patched(CUT_SHORT_TELLS):
            continue
        stored = shift_event(event, shift).event_id
        with suppress(WorkflowAlreadyStartedError):
            await workflow.start_child_workflow(
                Notify.run,
                stored,
                id=f"notify-{stored}",
                task_timeout=calls.TASK_TIMEOUT,
                static_summary=summary_line("notify", event.message),
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
