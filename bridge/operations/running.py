"""Starting and ending pipeline runs in Temporal."""

import asyncio

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities import outside
from activities.cluster import not_taken
from activities.pipelines.record import begun
from activities.store import pipeline_runs as stored
from activities.temporal import RPC_TIMEOUT, connect
from bridge.operations.pipelines import ActiveRunError
from bridge.operations.service import Service
from workflows import search
from workflows.errors import UnreachableError
from workflows.pipeline import ids
from workflows.pipeline.plan import OPEN_RUNS, RunInput
from workflows.pipeline.records import RunRecord
from workflows.pipeline.rows import first_rows
from workflows.pipeline_run import Cancel, PipelineRun

CLOSING_TRIES, CLOSING_SECONDS = 40, 0.05


async def start(service: Service, run: RunInput) -> str:
    """One active run per pipeline is Temporal's own rule: of any number at once, one is started (ruling J4)."""
    client = await connect(service.home, service.settings)
    for _ in range(CLOSING_TRIES):
        if await _started(client, service, run):
            stored.write(service.store, first_rows(run), begun(service.artifacts, run))
            return run.run_id
        active = await _active(client, run.pipeline)
        if active == run.run_id:  # a caller that brought its id asks again
            return run.run_id
        if not _has_ended(service, active):
            break
        await asyncio.sleep(CLOSING_SECONDS)
    hint = f"service pipeline watch {active}" if active else f"service pipeline runs --pipeline {run.pipeline}"
    raise ActiveRunError(
        f"the pipeline {run.pipeline} already has an active run{f', {active}' if active else ''}", hint
    )


async def _started(client: Client, service: Service, run: RunInput) -> bool:
    try:
        await client.start_workflow(
            PipelineRun.run,
            run,
            id=ids.workflow_id(run.pipeline),
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            task_queue=service.settings.temporal.task_queue,
            static_summary=search.run_summary(run),
            static_details=f"In a terminal: `service pipeline watch {run.run_id}`",
            search_attributes=search.run_attributes(run),
            rpc_timeout=RPC_TIMEOUT,
        )
    except WorkflowAlreadyStartedError:
        return False
    except (RPCError, RuntimeError, OSError) as error:
        raise await not_taken(client, error, "the run") from None
    return True


async def _active(client: Client, pipeline: str) -> str | None:
    try:
        described = await client.get_workflow_handle(ids.workflow_id(pipeline)).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError:
        return None
    return described.typed_search_attributes.get(search.ROOT)


def _has_ended(service: Service, run_id: str | None) -> bool:
    """Its rows are written a moment before its workflow closes: who has seen the end may start the next one."""
    found = stored.get(service.store, run_id) if run_id else None
    return found is not None and found.record.state not in OPEN_RUNS


async def cancel(service: Service, run: RunRecord, actor: str) -> None:
    """Durable once it is taken, whether a worker is there or not."""
    handle = (await connect(service.home, service.settings)).get_workflow_handle(ids.workflow_id(run.pipeline))
    try:
        await handle.signal(PipelineRun.cancel, Cancel(run_id=run.run_id, actor=actor), rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise UnreachableError(f"Temporal did not take the order: {error}", "service daemon status") from None
        outside.close_run(service.store, run, f"its workflow was ended from outside; closed by {actor}")
