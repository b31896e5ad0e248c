"""Delivery of one notification: the call that starts its workflow, and the activity that sends it on each channel where
it has not been delivered.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

from activities.host.context import Context
from activities.host.heartbeat import Heartbeat, beating
from activities.notify import message
from activities.notify.channels import Channel, CommandChannel, DeliveryError, LogFile, Webhook
from activities.settings import ready
from activities.stations.hook import reach
from activities.store import outbox
from workflows.temporal.calls import TASK_TIMEOUT
from workflows.temporal.notify import Notify
from workflows.text.markdown import summary_line

START_TIMEOUT = timedelta(seconds=5)


async def begin(client: Client, task_queue: str, notification_id: str, message: str) -> None:
    """Start the delivery of a notification, unless that was done before."""
    with contextlib.suppress(WorkflowAlreadyStartedError):
        await client.start_workflow(
            Notify.run,
            notification_id,
            id=f"notify-{notification_id}",
            task_queue=task_queue,
            task_timeout=TASK_TIMEOUT,
            static_summary=summary_line("notify", message),
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            rpc_timeout=START_TIMEOUT,
        )


class Deliverer:
    """The delivery of notifications. The activity fails if a channel failed, so that Temporal calls it again."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @activity.defn(name="deliver")
    async def deliver(self, notification_id: str) -> None:
        """Deliver on every channel where the notification has not arrived. If this host dies, another one takes
        over.
        """
        async with beating(Heartbeat("delivering")):
            await asyncio.to_thread(self._deliver, notification_id)

    def _deliver(self, notification_id: str) -> None:
        """Try each channel on its own, so that a channel that is down delays no other."""
        notification = outbox.get(self._context.store, notification_id)
        if notification is None:
            raise ApplicationError(f"the notification {notification_id} is not there yet", type="NotThere")
        dashboard = ready.dashboard_url(self._context.home, self._context.settings.bridge)
        notification = message.complete(self._context.store, notification, dashboard)
        failed = []
        for channel in channels(self._context):
            if outbox.is_delivered(self._context.store, notification_id, channel.name):
                continue
            error = ""
            try:
                channel.deliver(notification)
                reach("notification delivered", notification_id, channel.name)
            except DeliveryError as fault:
                error = str(fault) or type(fault).__name__
                failed.append(f"{channel.name}: {error}")
            outbox.record_try(self._context.store, notification_id, channel.name, error)
        if failed:
            raise ApplicationError("; ".join(failed), type="NotDelivered")


def channels(context: Context) -> Sequence[Channel]:
    """Build the channels of the settings."""
    wanted = context.settings.notify
    chosen: list[Channel] = []
    if wanted.log:
        chosen.append(LogFile(context.home.root / "notifications.jsonl"))
    if wanted.command:
        chosen.append(CommandChannel(tuple(wanted.command), context.environ))
    if wanted.webhook_url:
        chosen.append(Webhook(wanted.webhook_url, wanted.secret(context.environ)))
    return chosen
