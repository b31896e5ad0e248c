"""The GitHub process: one worker on the desk's queue, one on this host's queue, and a loop that signals the desk on
news.
"""

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError
from temporalio.client import Client as TemporalClient
from temporalio.worker import Worker

from activities import cluster, takeover
from activities.github.account import credentials
from activities.github.client import Client
from activities.host import admission
from activities.process import loud
from activities.settings import ready
from activities.store.github import account
from activities.store.leader import Chore, Leader
from bridge.github.declare_facts import is_news
from bridge.github.session import Session
from bridge.github.turn import Desk
from bridge.operations.github.desk import ring
from bridge.operations.service import Service
from bridge.operations.temporal import candidate, client_of
from workflows.model.errors import UnreachableError
from workflows.temporal.github_desk import GithubDesk, pushing_queue, turns_queue

log = logging.getLogger("service")

LOOK_SECONDS = 1.0
"""Seconds between two looks for news in the store."""

RING_SECONDS = 2.0
"""Least seconds between two signals to the desk."""


async def serve(service: Service) -> None:
    """Run both workers until SIGTERM."""
    settings = service.settings
    known = credentials(settings.github, os.environ)
    for name in settings.github.secrets:  # child processes must not see them
        os.environ.pop(name, None)
    await asyncio.to_thread(admission.check, candidate(service))
    temporal = await client_of(service)
    await cluster.require(temporal)
    taking = await takeover.begun(temporal, settings.host, settings.temporal.task_queue, GithubDesk.__name__)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await asyncio.to_thread(account.ask_anew, service.store)
    async with Client(service.store, known, settings.github.api_url) as client, AsyncExitStack() as stack:
        desk = Desk(Session(service, client))
        ours = settings.temporal.task_queue
        for queue, work in ((turns_queue(ours), desk.turn), (pushing_queue(ours, settings.host), desk.push)):
            worker = Worker(
                temporal,
                task_queue=queue,
                activities=[work],
                max_concurrent_activities=1,
                graceful_shutdown_timeout=timedelta(seconds=5),
                identity=takeover.worker_identity(settings.host),
            )
            await stack.enter_async_context(worker)
        ready.say(service.home.github_ready, service.reading.told())
        log.info("ready to speak to %s", settings.github.api_url)
        chores = _ring_for_news(service, temporal), ready.keep_beating(service.home.github_ready)
        beside = [taking, *(loud(asyncio.create_task(chore)) for chore in chores)]
        await stop.wait()
        for chore in beside:
            chore.cancel()


async def _ring_for_news(service: Service, temporal: TemporalClient) -> None:
    """Signal the desk at the start and, if this host leads, whenever the store has news. The desk's own timer covers
    facts that are due later.
    """
    leader = Leader(service.store, Chore.LOOK_FOR_NEWS_FOR_GITHUB)
    last = 0.0
    clock = asyncio.get_running_loop().time
    while True:
        try:
            if last == 0.0 or (
                clock() - last > RING_SECONDS and await asyncio.to_thread(lambda: leader.leads() and is_news(service))
            ):
                await ring(temporal, service.settings.temporal.task_queue)
                last = clock()
        except (SQLAlchemyError, UnreachableError, OSError) as error:
            log.warning("cannot be woken: %s", error)
            await asyncio.sleep(RING_SECONDS)
        await asyncio.sleep(LOOK_SECONDS)
