"""Termination of workflows that can't go on: begun by a release without seals, or sealed with another key."""

import asyncio
import logging

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.workflow import Info

from activities.sealing.gate import Refused

log = logging.getLogger(__name__)


def left_alone(info: Info, why: str) -> None:
    """Leave the workflow alone: if several hosts share a store, the one that began it may have another key and go
    on.
    """
    log.error("%s is left to other hosts: %s", info.workflow_id, why)


def by(client: Client) -> Refused:
    """Return a function that terminates such workflows with the reason; the rows of their trees are then ended as
    usual.
    """
    loop = asyncio.get_running_loop()

    def refused(info: Info, why: str) -> None:
        asyncio.run_coroutine_threadsafe(_end(client, info, why), loop)

    return refused


async def _end(client: Client, info: Info, why: str) -> None:
    try:
        await client.get_workflow_handle(info.workflow_id, run_id=info.run_id).terminate(reason=why)
    except RPCError as error:  # it has ended, and was only queried; or the next attempt ends it
        log.info("%s is not ended: %s", info.workflow_id, error)
