"""Background tasks of a worker: ending orphans, its watches, the free space, recording that the host is alive."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator

from sqlalchemy.exc import SQLAlchemyError
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.ended_outside import OutsideWatch
from activities.host import admission, identity
from activities.host.context import Context
from activities.moving import HostWatch
from activities.runs import orphans
from activities.runs.service_process import watch_task
from activities.store import attempt_rows
from activities.store.leader import Chore, Leader
from activities.store.registry import host_rows
from activities.workflow_steps import unevictable
from workflows.model.errors import ServiceError
from workflows.policy.host_availability import DRAINED
from workflows.text.plurals import quantity

log = logging.getLogger(__name__)

CHECK_SECONDS = 15.0
"""Interval of checks for workflows that were ended from outside, and for lost hosts."""
CHECK_MOST_SECONDS = 600.0
"""Time limit of such a check, after which the next one begins."""
SEEN_SECONDS = 10.0
"""Interval at which a worker records that it is alive."""
LET_GO_SECONDS = 600.0
"""If jobs don't move to other hosts by themselves, the seconds without the store after which a worker ends."""
STUCK_SECONDS = 10.0
"""Interval of looking for workflows that this worker can't evict. The worker ends only after two looks in a row,
because the SDK retries an eviction.
"""


async def end_orphans(context: Context) -> int:
    """Report, then end, this home's orphaned processes. A run without a recorded outcome keeps running: its attempt
    attaches to it again.
    """
    wanted = await asyncio.to_thread(attempt_rows.all_open, context.store)
    processes = await asyncio.to_thread(orphans.find_orphans, context.home.runs, set(wanted))
    await orphans.end(processes, context.home.orphans, context.settings.worker.stop_grace)
    return len(processes)


async def keep_true(client: Client, context: Context) -> None:
    """Record stalls, and end the rows of workflows that Temporal ended from outside, while the worker lives."""
    leader = Leader(context.store, Chore.SETTLE_ENDED_WORKFLOWS)
    await _again_and_again(OutsideWatch(client, context, leader), "workflows that were ended from outside")


async def keep_moving(client: Client, context: Context) -> None:
    """Notify people of lost hosts, and move their jobs to other hosts, while the worker lives."""
    leader = Leader(context.store, Chore.MOVE_JOBS_OF_LOST_HOSTS)
    await _again_and_again(HostWatch(client, context, leader), "lost hosts")


async def _again_and_again(watch: OutsideWatch | HostWatch, what: str) -> None:
    try:
        while True:
            try:
                async with asyncio.timeout(CHECK_MOST_SECONDS):
                    await watch.check()
            except (RPCError, RuntimeError, OSError, SQLAlchemyError, ServiceError) as error:
                log.warning("cannot look for %s: %s", what, str(error) or "it takes too long")
                watch.leader.resign()  # another host may be able to
            await asyncio.sleep(CHECK_SECONDS)
    finally:
        watch.leader.resign()


async def keep_stepping(trees: Worker) -> None:
    """End this worker if it can't evict a workflow from its cache, because that workflow's tree would stall."""
    stuck = 0
    while True:
        await asyncio.sleep(STUCK_SECONDS)
        before, stuck = stuck, unevictable(trees)
        if before and stuck:
            _let_go(f"{quantity(stuck, 'workflow')} can't be removed from memory, so slots stay taken")


async def keep_room(context: Context) -> None:
    """While the worker lives, hold new runs back if the disk is full, and end runs that fill it."""
    root, settings, known = context.home.root, context.settings.worker, ""
    while True:
        try:
            held = await asyncio.to_thread(context.room.look, root, settings)
            if bool(held) != bool(known):
                log.warning("%s", held or f"there is enough free space again on the disk of {root}")
            context.room.hold(known := held)
        except (OSError, ServiceError) as error:
            log.warning("cannot check the free space of the disk: %s", error)
        await asyncio.sleep(context.room.seconds)


@contextlib.asynccontextmanager
async def record_presence(context: Context, namespace: str) -> AsyncIterator[None]:
    """Admit this host to its fleet, and record heartbeats of its worker until the context ends. Then record the orderly
    end.
    """
    started_at = time.time()
    await asyncio.to_thread(admission.admit, context, namespace, started_at=started_at)
    context.room.hold(await asyncio.to_thread(_drain_reason, context), "drain")
    saying = watch_task(asyncio.create_task(_keep_recording(context, started_at)))
    try:
        yield
    finally:
        saying.cancel()
        with contextlib.suppress(SQLAlchemyError):
            await asyncio.to_thread(host_rows.stop, context.store, context.host, started_at=started_at)


async def _keep_recording(context: Context, started_at: float) -> None:
    """Record repeatedly that the host is alive. The worker survives a store that is unreachable for a while."""
    recorded, most = time.monotonic(), _patience(context)
    while True:
        await asyncio.sleep(SEEN_SECONDS)
        try:
            async with asyncio.timeout(most and recorded + most - time.monotonic()):
                if not await asyncio.to_thread(identity.see, context, started_at):
                    log.error("another machine works under the name %s of this host: this worker stops", context.host)
                    signal.raise_signal(signal.SIGTERM)
                context.room.hold(await asyncio.to_thread(_drain_reason, context), "drain")
            recorded = time.monotonic()
        except SQLAlchemyError as error:
            log.warning("cannot record the heartbeat of this host in the store: %s", error)
        except TimeoutError:
            _let_go("the store has not answered for too long")


def _patience(context: Context) -> float | None:
    """Return the seconds that the worker keeps running without its store; None, for ever, if no other host shares the
    store.
    """
    return (context.settings.fleet.move_after or LET_GO_SECONDS) if context.settings.store.url else None


def _let_go(why: str) -> None:
    """End this worker at once, so that other workers take over the workflow tasks it has begun.

    Its agents keep running, and the next worker attaches to them. An orderly end is impossible: threads wait for the
    store, or workflows can't be evicted.
    """
    log.error("%s: this worker ends, and others take the steps of its trees", why)
    os.kill(os.getpid(), signal.SIGKILL)


def _drain_reason(context: Context) -> str:
    """Return why this host starts no run, if a person has drained it: that outlives a restart (ruling Q8)."""
    host = host_rows.get(context.store, context.host)
    return DRAINED if host is not None and host.draining_at is not None else ""
