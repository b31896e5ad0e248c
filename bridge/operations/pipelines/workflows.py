"""The workflows of pipelines: starting, reopening and cancelling their runs (ruling J4), keeping their schedules."""

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
    WorkflowExecution,
    WorkflowExecutionStatus,
)
from temporalio.common import WorkflowIDConflictPolicy

from activities.pipelines.record_run import definition_and_payload
from activities.store import run_rows
from activities.temporal import RPC_TIMEOUT
from bridge.operations import temporal
from bridge.operations.pipelines.runs import ActiveRunError
from bridge.operations.service import Service
from bridge.operations.temporal import (
    AlreadyStartedError,
    InvalidError,
    NoWorkflowError,
    client_of,
    starting,
    translate_errors,
)
from workflows.model import ids
from workflows.model.errors import ServiceError, UsageError
from workflows.model.orders import Cancel
from workflows.pipeline import definition
from workflows.pipeline.definition import Definition
from workflows.pipeline.plan import OPEN_RUNS, RunInput
from workflows.pipeline.rows import RunRecord, StageRecord, first_rows
from workflows.pipeline.state import restore
from workflows.policy import binding_words
from workflows.temporal import search
from workflows.temporal.calls import TASK_TIMEOUT
from workflows.temporal.messages import Reopened, TreeStart
from workflows.temporal.pipeline_calls import Firing
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.pipeline_schedule import PipelineFiring
from workflows.text.durations import parse_duration

NOT_TAKEN = "Temporal did not accept the schedule"

CATCH_UP = timedelta(minutes=10)
"""Firings that were missed while no server ran are made up for within this time; older ones are skipped."""

MOST_ASKED = 200
"""The number of schedules that are read for one list."""


CLOSING_TRIES, CLOSING_SECONDS = 40, 0.05
QUERY_TIMEOUT = timedelta(seconds=10)
"""The timeout for reading a run's state, which a worker may have to rebuild from history."""


async def start(service: Service, run: RunInput) -> str:
    """Start a run. Temporal permits one active run per pipeline, even for concurrent starts (ruling J4)."""
    client = await client_of(service)
    for _ in range(CLOSING_TRIES):
        if await _try_start(client, service, run):
            run_rows.write(service.store, first_rows(run), definition_and_payload(service.artifacts, run))
            return run.run_id
        active = await _active(client, run.pipeline)
        if active == run.run_id:  # a caller that brought its id repeats the call
            return run.run_id
        if not _has_ended(service, active):
            break
        await asyncio.sleep(CLOSING_SECONDS)
    hint = f"service pipeline watch {active}" if active else f"service pipeline runs --pipeline {run.pipeline}"
    raise ActiveRunError(
        f"the pipeline {run.pipeline} already has an active run{f', {active}' if active else ''}", hint
    )


async def reopen(service: Service, client: Client, stage: StageRecord, tree: TreeStart) -> bool:
    """Continue a stage's blocked tree in its run, active or ended; return False if Temporal has forgotten the run."""
    run = run_rows.get(service.store, stage.run_id)
    workflow = await _workflow_of(client, run.record) if run else None
    if run is None or workflow is None:
        return False
    again = Reopened(stage_id=stage.stage_id, tree=tree)
    if workflow.status is WorkflowExecutionStatus.RUNNING:
        handle = client.get_workflow_handle(workflow.id, run_id=workflow.run_id)
        with translate_errors():
            await handle.signal(PipelineRun.reopen, again, rpc_timeout=RPC_TIMEOUT)
        return True
    handle = client.get_workflow_handle(workflow.id, run_id=workflow.run_id)
    with translate_errors():
        memory = await handle.query(PipelineRun.memory, rpc_timeout=QUERY_TIMEOUT)
    again = again.model_copy(update={"memory": memory})
    if await _try_start(client, service, restore(memory).input, again):
        return True
    active = await _active(client, run.record.pipeline)
    raise ActiveRunError(
        f"the pipeline {run.record.pipeline} already has an active run, {active}: this one goes on after it",
        f"service pipeline watch {active}",
    )


async def _workflow_of(client: Client, run: RunRecord) -> WorkflowExecution | None:
    """Return the newest workflow of a run; None once Temporal has forgotten it."""
    query = f"WorkflowId = '{ids.workflow_id(run.pipeline)}' AND {search.ROOT.name} = '{run.run_id}'"
    with translate_errors():
        executions = [each async for each in client.list_workflows(query, limit=100, rpc_timeout=RPC_TIMEOUT)]
    return max(executions, key=lambda execution: execution.start_time, default=None)


async def _try_start(client: Client, service: Service, run: RunInput, again: Reopened | None = None) -> bool:
    github = binding_words.address(run.github, run.pull_request, run.issue, service.settings.github.web)
    seen = temporal.web_ui_details(service, f"service pipeline watch {run.run_id}", f"/ui/runs/{run.run_id}", github)
    try:
        async with starting(client, "the run"):
            await client.start_workflow(
                PipelineRun.run,
                run.model_copy(update={"again": again.model_dump(mode="json")}) if again else run,
                id=ids.workflow_id(run.pipeline),
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                task_queue=service.settings.temporal.task_queue,
                task_timeout=TASK_TIMEOUT,
                static_summary=search.run_summary(run),
                static_details=seen,
                search_attributes=search.run_attributes(run),
                rpc_timeout=RPC_TIMEOUT,
            )
    except AlreadyStartedError:
        return False
    return True


async def _active(client: Client, pipeline: str) -> str | None:
    try:
        with translate_errors():
            described = await client.get_workflow_handle(ids.workflow_id(pipeline)).describe(rpc_timeout=RPC_TIMEOUT)
    except ServiceError:
        return None
    return described.typed_search_attributes.get(search.ROOT)


def _has_ended(service: Service, run_id: str | None) -> bool:
    """Return whether the run has ended according to the store, shortly before its workflow closes."""
    run = run_rows.get(service.store, run_id) if run_id else None
    return run is not None and run.record.state not in OPEN_RUNS


async def cancel(service: Service, run: RunRecord, actor: str) -> None:
    """Cancel a run; Temporal keeps the order until a worker takes it."""
    handle = (await client_of(service)).get_workflow_handle(ids.workflow_id(run.pipeline))
    try:
        with translate_errors():
            await handle.signal(PipelineRun.cancel, Cancel(run_id=run.run_id, actor=actor), rpc_timeout=RPC_TIMEOUT)
    except NoWorkflowError:
        run_rows.close_lost(service.store, run.run_id, f"its workflow was ended from outside; closed by {actor}")


async def put(service: Service, pipeline: Definition) -> None:
    """Create or update the schedule that the definition wants; delete it if it wants none."""
    if pipeline.schedule is None:
        await delete(service, pipeline.name)
        return
    wanted = _schedule(pipeline, pipeline.schedule, service.settings.temporal.task_queue)
    client = await client_of(service)
    try:
        with suppress(AlreadyStartedError), translate_errors(NOT_TAKEN):
            await client.create_schedule(ids.workflow_id(pipeline.name), wanted, rpc_timeout=RPC_TIMEOUT)
            return
        with translate_errors(NOT_TAKEN):
            known = client.get_schedule_handle(ids.workflow_id(pipeline.name))
            await known.update(lambda _: ScheduleUpdate(schedule=wanted), rpc_timeout=RPC_TIMEOUT)
    except InvalidError as error:
        raise UsageError(f"schedule cannot be used: {error.why}", "edit the file's schedule") from None


async def delete(service: Service, name: str) -> None:
    """Delete the pipeline's schedule."""
    client = await client_of(service)
    with suppress(NoWorkflowError), translate_errors():
        await client.get_schedule_handle(ids.workflow_id(name)).delete(rpc_timeout=RPC_TIMEOUT)


async def next_firings(service: Service, names: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Return the next firing times of these pipelines' schedules; none for a disabled or missing one."""
    client = await client_of(service)
    wanted = list(names)[:MOST_ASKED]
    return dict(zip(wanted, await asyncio.gather(*(_firings(client, name) for name in wanted)), strict=True))


async def _firings(client: Client, name: str) -> tuple[float, ...]:
    with suppress(NoWorkflowError), translate_errors("Temporal cannot say when it fires"):
        description = await client.get_schedule_handle(ids.workflow_id(name)).describe(rpc_timeout=RPC_TIMEOUT)
        times = () if description.schedule.state.paused else description.info.next_action_times
        return tuple(at.timestamp() for at in times)
    return ()


def _schedule(pipeline: Definition, when: definition.Schedule, task_queue: str) -> Schedule:
    """Build the schedule of a small workflow that starts the run, since a schedule can't choose the run's workflow id
    itself.
    """
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
