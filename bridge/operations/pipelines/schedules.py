"""The Temporal Schedule of a pipeline, kept in step with its definition."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
)

from activities.temporal import RPC_TIMEOUT
from bridge.operations.service import Service
from bridge.operations.temporal import (
    AlreadyStartedError,
    InvalidError,
    NoWorkflowError,
    client_of,
    translated,
)
from workflows.model import ids
from workflows.model.errors import UsageError
from workflows.pipeline import definition
from workflows.pipeline.definition import Definition
from workflows.temporal.calls import TASK_TIMEOUT
from workflows.temporal.pipeline_calls import Firing
from workflows.temporal.pipeline_schedule import PipelineFiring
from workflows.text.durations import parse_duration

NOT_TAKEN = "Temporal did not accept the schedule"

CATCH_UP = timedelta(minutes=10)
"""A firing that was missed for longer, because no server ran, is skipped."""

MOST_ASKED = 200
"""The number of schedules that are read for one list."""


async def put(service: Service, pipeline: Definition) -> None:
    """Create or update the schedule that the definition wants; delete it if it wants none."""
    if pipeline.schedule is None:
        await delete(service, pipeline.name)
        return
    wanted = _schedule(pipeline, pipeline.schedule, service.settings.temporal.task_queue)
    client = await client_of(service)
    try:
        with suppress(AlreadyStartedError), translated(NOT_TAKEN):
            await client.create_schedule(ids.workflow_id(pipeline.name), wanted, rpc_timeout=RPC_TIMEOUT)
            return
        with translated(NOT_TAKEN):
            known = client.get_schedule_handle(ids.workflow_id(pipeline.name))
            await known.update(lambda _: ScheduleUpdate(schedule=wanted), rpc_timeout=RPC_TIMEOUT)
    except InvalidError as error:
        raise UsageError(f"schedule cannot be used: {error.why}", "edit the file's schedule") from None


async def delete(service: Service, name: str) -> None:
    """Delete the pipeline's schedule."""
    client = await client_of(service)
    with suppress(NoWorkflowError), translated():
        await client.get_schedule_handle(ids.workflow_id(name)).delete(rpc_timeout=RPC_TIMEOUT)


async def next_firings(service: Service, names: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Return the next firing times of these pipelines' schedules; none for a disabled or missing one."""
    client = await client_of(service)
    wanted = list(names)[:MOST_ASKED]
    return dict(zip(wanted, await asyncio.gather(*(_firings(client, name) for name in wanted)), strict=True))


async def _firings(client: Client, name: str) -> tuple[float, ...]:
    with suppress(NoWorkflowError), translated("Temporal cannot say when it fires"):
        found = await client.get_schedule_handle(ids.workflow_id(name)).describe(rpc_timeout=RPC_TIMEOUT)
        times = () if found.schedule.state.paused else found.info.next_action_times
        return tuple(at.timestamp() for at in times)
    return ()


def _schedule(pipeline: Definition, when: definition.Schedule, task_queue: str) -> Schedule:
    """Build the schedule of a small workflow that starts the run: a schedule could not choose the run's workflow id."""
    every = [ScheduleIntervalSpec(every=timedelta(seconds=parse_duration(when.interval)))] if when.interval else []
    return Schedule(
        action=ScheduleActionStartWorkflow(
            PipelineFiring.run,
            Firing(pipeline=pipeline.name),
            id=f"{ids.FIRING}{pipeline.name}",
            task_queue=task_queue,
            task_timeout=TASK_TIMEOUT,
            static_summary=f"{pipeline.name} · start a run, by its schedule",
        ),
        spec=ScheduleSpec(
            cron_expressions=[when.cron] if when.cron else [],
            intervals=every,
            jitter=timedelta(seconds=parse_duration(when.jitter)) if when.jitter else None,
            time_zone_name=when.timezone,
        ),
        # Firings that pile up while no worker is there count as one.
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
        state=ScheduleState(paused=not pipeline.enabled, note=f"service pipeline show {pipeline.name}"),
    )
