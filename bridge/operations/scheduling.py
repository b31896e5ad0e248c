"""Keeping the Temporal Schedule of a pipeline in step with its definition."""

from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.temporal import RPC_TIMEOUT, connect
from bridge.operations.service import Service
from workflows.contract.durations import parse_duration
from workflows.errors import UnreachableError, UsageError
from workflows.pipeline import definition, ids
from workflows.pipeline.definition import Definition
from workflows.pipeline_calls import Firing
from workflows.pipeline_schedule import PipelineFiring

CATCH_UP = timedelta(minutes=10)
"""A firing missed for longer, because nothing ran, is not made up for."""


async def put(service: Service, pipeline: Definition) -> None:
    """The schedule the definition wants, or none."""
    client = await connect(service.home, service.settings)
    try:
        if pipeline.schedule is None:
            await _delete(client, pipeline.name)
            return
        wanted = _schedule(pipeline, pipeline.schedule, service.settings.temporal.task_queue)
        try:
            await client.create_schedule(ids.workflow_id(pipeline.name), wanted, rpc_timeout=RPC_TIMEOUT)
        except ScheduleAlreadyRunningError:
            await _handle(client, pipeline.name).update(_replacing(wanted), rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise UsageError(f"schedule cannot be used: {error}", "edit the file's schedule") from None
        raise UnreachableError(f"Temporal did not take the schedule: {error}", "service daemon status") from None


async def delete(service: Service, name: str) -> None:
    """No schedule of this pipeline fires any more."""
    client = await connect(service.home, service.settings)
    try:
        await _delete(client, name)
    except RPCError as error:
        raise UnreachableError(f"Temporal did not take the order: {error}", "service daemon status") from None


async def _delete(client: Client, name: str) -> None:
    try:
        await _handle(client, name).delete(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


def _handle(client: Client, name: str) -> ScheduleHandle:
    return client.get_schedule_handle(ids.workflow_id(name))


def _replacing(wanted: Schedule):  # type: ignore[no-untyped-def]
    def update(_: ScheduleUpdateInput) -> ScheduleUpdate:
        return ScheduleUpdate(schedule=wanted)

    return update


def _schedule(pipeline: Definition, when: definition.Schedule, task_queue: str) -> Schedule:
    """It starts the small workflow that starts the run: a schedule gives its workflows ids of its own."""
    return Schedule(
        action=ScheduleActionStartWorkflow(
            PipelineFiring.run,
            Firing(pipeline=pipeline.name),
            id=f"firing-{pipeline.name}",
            task_queue=task_queue,
            static_summary=f"the schedule of {pipeline.name}",
        ),
        spec=_spec(when),
        # Firings that pile up while no worker is there are one firing.
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
        state=ScheduleState(paused=not pipeline.enabled, note=f"service pipeline show {pipeline.name}"),
    )


def _spec(when: definition.Schedule) -> ScheduleSpec:
    every = [ScheduleIntervalSpec(every=timedelta(seconds=parse_duration(when.interval)))] if when.interval else []
    return ScheduleSpec(
        cron_expressions=[when.cron] if when.cron else [],
        intervals=every,
        jitter=timedelta(seconds=parse_duration(when.jitter)) if when.jitter else None,
        time_zone_name=when.timezone,
    )
