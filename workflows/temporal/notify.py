"""Telling people: each event in a workflow of its own, which outlives the tree it speaks of and tries for days."""

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from workflows.model.event_kinds import TELLS_PEOPLE, EventKind
    from workflows.model.rows import Records, shifted
    from workflows.temporal import calls

FINALIZED_TELLS = "finalized-tells"
"""A tree that an earlier release ran told nobody of a finalize that ended badly, and must not in a replay."""

PATIENCE = timedelta(days=7)
_RETRIES = RetryPolicy(initial_interval=timedelta(seconds=2), maximum_interval=timedelta(minutes=10))


@workflow.defn
class Notify:
    """Delivers one notification on every channel; its workflow id is the notification's, so none is told twice."""

    @workflow.run
    async def run(self, notification_id: str) -> None:
        await workflow.execute_activity(
            calls.deliver,
            notification_id,
            start_to_close_timeout=timedelta(minutes=2),
            heartbeat_timeout=calls.HEARTBEAT,
            schedule_to_close_timeout=PATIENCE,
            retry_policy=_RETRIES,
        )


async def tell_people(rows: Records, shift: int) -> None:
    """Each in a workflow of its own, named after the event as the store numbers it: told once, outliving its tree."""
    for event in (event for event in rows.events if event.kind in TELLS_PEOPLE):
        finalized = event.kind == EventKind.TASK_BLOCKED and not event.data.get("retry")
        if finalized and not workflow.patched(FINALIZED_TELLS):
            continue
        stored = shifted(event, shift).event_id
        with suppress(WorkflowAlreadyStartedError):
            await workflow.start_child_workflow(
                Notify.run,
                stored,
                id=f"notify-{stored}",
                task_timeout=calls.TASK_TIMEOUT,
                static_summary=event.kind,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
