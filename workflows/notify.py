"""The workflow that tells people one thing: it outlives the tree it speaks of, and tries for days."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from workflows import calls

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
