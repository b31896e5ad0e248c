"""Holding a host that Temporal does not answer."""

import asyncio

from temporalio.client import Client
from temporalio.service import RPCError

from activities.host.context import Context
from activities.temporal import RPC_TIMEOUT
from workflows.policy.host_availability import WITHOUT_TEMPORAL

CHECK_SECONDS = 15.0


async def keep_in_touch(client: Client, context: Context) -> None:
    """Hold new runs back while Temporal doesn't answer, so that no job is placed on this host; until the worker
    ends.
    """
    while True:
        try:
            await client.service_client.check_health(timeout=RPC_TIMEOUT)
            context.room.hold("", "temporal")
        except (RPCError, RuntimeError):
            context.room.hold(WITHOUT_TEMPORAL, "temporal")
        await asyncio.sleep(CHECK_SECONDS)
