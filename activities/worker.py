"""The worker: one process that polls two task queues for all the work of a host."""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

import uvloop
from temporalio.client import Client
from temporalio.worker import Interceptor, PollerBehaviorAutoscaling, Worker, WorkerDeploymentConfig

from activities import cluster, takeover, telemetry, without_temporal, worker_releases
from activities.agents.registry import adapters_of
from activities.boxes import control_group
from activities.host import admission, boxing, helper_process, old_runs
from activities.host.context import Context
from activities.host.heartbeat import BEAT
from activities.host.slots import Slots
from activities.host.tree_reports import TreeReports
from activities.housekeeping import (
    end_orphans,
    keep_moving,
    keep_room,
    keep_stepping,
    keep_true,
    record_presence,
)
from activities.jobs import execution
from activities.jobs.placing import Placer
from activities.jobs.record_tree import TreeRecorder
from activities.jobs.run_job import Jobs
from activities.notify.deliver import Deliverer
from activities.pipelines.record_run import RunRecorder
from activities.pipelines.run_stage import Stages
from activities.redaction.on_temporal import Redacting
from activities.redaction.redact import search_apart
from activities.runs import spawn
from activities.runs.service_process import run, watch_task
from activities.runs.supervised_run import home_mark
from activities.sealing import seal_check
from activities.sealing.seal_check import with_gate
from activities.settings import ready
from activities.settings.home import Home
from activities.settings.load import load
from activities.store.connections import Member, share
from activities.store.database import open_store
from activities.temporal import connect, external_config, namespace_of
from activities.workflow_steps import patient
from workflows.temporal.calls import agents_queue
from workflows.temporal.runner import WORKFLOWS, runner

STICKY_TIMEOUT = timedelta(seconds=2)
"""Timeout after which another worker takes a task from a dead worker's sticky queue, unless `takeover` was faster."""

SHUTDOWN = timedelta(seconds=5)
TREE_STEPS = 24
"""The least limit of tree steps that run at once."""

ASKING = PollerBehaviorAutoscaling(minimum=4, initial=TREE_STEPS // 2, maximum=TREE_STEPS)
"""Pollers for steps of trees. If no poller waits, the server first writes a step into its database: with the SDK's
default of five pollers, it wrote half of all steps.
"""

CACHED_TREES = 10
"""Cached workflows per tree step that may run at once, some 100 KB each; others are rebuilt from their history.

Far more than steps, because otherwise a workflow is evicted while it writes its rows, and its step is lost until the
server's timeout.
"""

STEPPING = 4
"""Threads for the steps of trees. They share one interpreter, and many threads waste time switching.

More than two, because a step's time limit includes its wait for a thread: two long steps must not delay all others.
"""

WRITING, WRITING_FAR = 2, 8
"""Threads that write rows: SQLite takes one writer at a time, and a remote database has latency."""

WAITING_ROOM = 1000
"""Runs that this host accepts; its slots limit how many run at once (ruling C8)."""


def tree_worker(
    client: Client,
    context: Context,
    traced: Sequence[Interceptor] = (),
    release: WorkerDeploymentConfig | None = None,
) -> Worker:
    """Return the worker that runs the workflow steps of all trees and runs, as one of several releases if hosts may
    have several.
    """
    recorder, books = TreeRecorder(context), RunRecorder(context)
    writing = WRITING_FAR if context.settings.store.url else WRITING
    refused = seal_check.leave_alone if context.settings.store.url else seal_check.ender(client)
    steps = max(TREE_STEPS, 2 * context.settings.worker.max_parallel_jobs)
    worker = Worker(
        client,
        task_queue=context.settings.temporal.task_queue,
        workflows=WORKFLOWS,
        activities=[
            *recorder.activities,
            Placer(context).place,
            Deliverer(context).deliver,
            books.record_run,
            books.plan_run,
        ],
        activity_executor=ThreadPoolExecutor(writing, thread_name_prefix="activity"),
        workflow_task_executor=ThreadPoolExecutor(STEPPING, thread_name_prefix="step"),
        workflow_runner=with_gate(runner(), client.data_converter, refused),
        max_cached_workflows=CACHED_TREES * steps,
        max_concurrent_workflow_tasks=steps,
        workflow_task_poller_behavior=ASKING,
        interceptors=[*traced, Redacting()],
        identity=takeover.worker_identity(context.host),
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        deployment_config=release,
        max_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=SHUTDOWN,
    )
    return patient(worker)


def agent_worker(client: Client, context: Context, slots: Slots, traced: Sequence[Interceptor] = ()) -> Worker:
    """Return the worker that runs the attempts of jobs and stages on this host."""
    context.room.heeded_by.append(slots.hold)
    slots.hold(context.room.held)
    jobs = Jobs(context, adapters_of(context.settings, context.environ), slots)
    return Worker(
        client,
        task_queue=agents_queue(context.host),
        activities=[jobs.run_job, Stages(context, slots).run_stage],
        max_concurrent_activities=WAITING_ROOM,
        interceptors=[*traced, Redacting()],
        identity=takeover.worker_identity(context.host),
        max_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=timedelta(seconds=1),
    )


def group_name(home: Home) -> str:
    """Return the name of the control group of a home's agents on this host."""
    return f"service-agents-{home_mark(home.runs)}"


def _chores(
    client: Client, context: Context, trees: Worker, *, deployed: bool, ordered_by_store: bool
) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield the background tasks of this host, which last as long as the worker."""
    yield ready.keep_beating(context.home.worker_ready)
    yield keep_stepping(trees)
    yield old_runs.keep_tidy(context)
    yield keep_true(client, context)
    yield keep_room(context)
    yield asyncio.to_thread(boxing.prove, context.settings)
    if context.settings.store.url:  # a home with a database of its own is one host
        yield keep_moving(client, context)
        yield without_temporal.keep_in_touch(client, context)
    if ordered_by_store:
        yield context.stops.follow(context.store)
    if deployed:
        yield worker_releases.keep_current(client, context)


async def serve(home: Home) -> None:
    """Work until SIGTERM. Running agents continue after that; the next worker attaches to them again."""
    loaded = load(home)
    settings = loaded.settings
    settings.notify.secret(os.environ)
    context = Context(
        home.ensure(),
        settings,
        open_store(home, settings.store.url, connections=share(settings.store.pool, Member.WORKER)),
    )
    admission.check_key(admission.JoiningHost(context.store, home, settings, namespace_of(home, settings)))
    own = settings.worker
    all_jobs, each_job = control_group.limits(own.agents_memory), control_group.job_limits(own.job_memory, own.job_pids)
    spawn.keep_within(control_group.make(group_name(home), all_jobs, each_job))
    helpers = asyncio.create_task(asyncio.to_thread(helper_process.ready, execution.__name__))
    search_apart(helper_process.secrets)
    telemetry.offer_metrics(settings)
    client = await connect(home, settings)
    await cluster.require(client)
    slots = Slots(settings)
    reports = TreeReports(client, asyncio.get_running_loop())
    context = replace(context, reports=reports, load=lambda: slots.load)
    await end_orphans(context)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(record_presence(context, client.namespace))
        traced, release = telemetry.begin_traces(context.host), await worker_releases.config(client, settings)
        trees = tree_worker(client, context, traced, release)
        await stack.enter_async_context(trees)
        if release and not await worker_releases.make_current(client, context):
            await trees.shutdown()
            trees, release = tree_worker(client, context, traced), None
            await stack.enter_async_context(trees)
        taking = await takeover.begin(client, context.host, settings.temporal.task_queue)
        await helpers
        await stack.enter_async_context(agent_worker(client, context, slots, traced))
        gc.freeze()  # loaded objects stay: spare the garbage collector from traversing them
        ready.say(home.worker_ready, loaded.reading.in_use())
        logging.getLogger("service").info("worker ready")
        ordered_by_store = external_config(settings) is not None and not await cluster.sends_cancellations(client)
        chores_of = _chores(client, context, trees, deployed=release is not None, ordered_by_store=ordered_by_store)
        tasks = map(asyncio.create_task, chores_of)
        chores = [taking, *map(watch_task, tasks)]
        await stop.wait()
        for chore in chores:
            chore.cancel()
    await asyncio.to_thread(helper_process.close)
    await asyncio.to_thread(spawn.close)


def main() -> NoReturn:
    """Run `python -m activities` on libuv's event loop, which leaves more of the interpreter's time to jobs."""
    run(lambda: uvloop.run(serve(Home.locate())))


if __name__ == "__main__":  # as a daemon of 0.2.0 starts it, once this release stands under it
    main()
