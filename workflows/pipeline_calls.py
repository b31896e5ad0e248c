"""The activities that pipeline workflows call: their names and types. The side effects live in `activities`."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import Priority
from temporalio.exceptions import ActivityError, is_cancelled_exception

from workflows import calls
from workflows.calls import (
    FOREVER,
    RECORD_RETRIES,
    RUN_RETRIES,
    Offer,
    TakenBack,
    agents_queue,
    unless_taken_back,
    why,
)
from workflows.pipeline.plan import RunInput, StageOutcome, StageState
from workflows.pipeline.records import RunRecords
from workflows.pipeline.stage_run import StageRun
from workflows.tree.jobs import Wire


class Firing(Wire):
    """A schedule wants a run."""

    pipeline: str
    run_id: str = ""
    """Decided by the workflow, once for each firing."""


class Planned(Wire):
    """What the schedule starts; or the run that never was, and why."""

    start: RunInput
    refused: str = ""


@activity.defn
def run_stage(run: StageRun) -> StageOutcome:
    """Run one attempt of a shell stage to its end, on the host that owns the checkout."""
    raise NotImplementedError


@activity.defn
def record_run(records: RunRecords) -> None:
    """Write rows of a run; writing them again changes nothing."""
    raise NotImplementedError


@activity.defn
def plan_run(firing: Firing) -> Planned:
    """Everything a scheduled run needs, from the pipeline as it is now."""
    raise NotImplementedError


async def attempt(run: StageRun, host: str) -> StageOutcome:
    """Run one attempt of a shell stage; whatever goes wrong on the way is an outcome too."""
    work = workflow.start_activity(
        run_stage,
        run,
        task_queue=agents_queue(host),
        start_to_close_timeout=FOREVER,
        heartbeat_timeout=calls.HEARTBEAT,
        retry_policy=RUN_RETRIES,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        priority=Priority(fairness_key=run.run_id[:64]),
        summary=f"{run.stage_id} - attempt {run.attempt}",
    )
    try:
        return await unless_taken_back(work, Offer(job_id=run.job_id, attempt=run.attempt))
    except TakenBack:
        return StageOutcome(state=StageState.CANCELLED, reason="stopped before it began")
    except ActivityError as error:
        state = StageState.CANCELLED if is_cancelled_exception(error) else StageState.FAILED
        return StageOutcome(state=state, reason=why(error))


async def write(records: RunRecords) -> None:
    """Write rows from inside the workflow's own task: one event in the history, no round trip."""
    await workflow.execute_local_activity(
        record_run, records, start_to_close_timeout=timedelta(seconds=60), retry_policy=RECORD_RETRIES
    )


async def plan(firing: Firing) -> Planned:
    """The pipeline as it is at this moment."""
    return await workflow.execute_local_activity(
        plan_run, firing, start_to_close_timeout=timedelta(seconds=60), retry_policy=RECORD_RETRIES
    )
