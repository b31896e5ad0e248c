"""The activities that pipeline workflows call: their names and types. The side effects live in `activities`."""

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from workflows.model.wire import Wire
from workflows.pipeline.plan import RunInput, StageOutcome, StageState
from workflows.pipeline.records import RunRecords
from workflows.pipeline.rows import reduced_rows
from workflows.pipeline.stage_run import StageRun
from workflows.pipeline.view import wrote
from workflows.temporal import calls
from workflows.temporal.calls import LOCAL, Offer, TakenBack, on_host, why


class Firing(Wire):
    """A schedule wants a run."""

    pipeline: str
    run_id: str = ""
    """Decided by the workflow, once for each firing."""


class Planned(Wire):
    """What the schedule starts; or the run that is not started, and why."""

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
    offer = Offer(job_id=run.job_id, attempt=run.attempt)
    summary = f"{run.stage_id} - attempt {run.attempt}"
    try:
        outcome = await on_host(run_stage, run, offer, host=host, fairness=run.run_id, summary=summary)
        if outcome.of in ("", run.named):
            return outcome
        reason = f"what came back is the outcome of {outcome.of}: it is not believed"
        return StageOutcome(state=StageState.FAILED, reason=reason)
    except TakenBack:
        return StageOutcome(state=StageState.CANCELLED, reason="stopped before it began")
    except ActivityError as error:
        state = StageState.CANCELLED if is_cancelled_exception(error) else StageState.FAILED
        return StageOutcome(state=state, reason=why(error))


async def write(records: RunRecords) -> None:
    """Write rows from inside the workflow's own task: one event in the history, no round trip.

    Those that the store will never take are written shortened; a run that cannot even be told of so fails (ruling B6).
    """
    if not (refused := await _write(records)):
        return
    if refused := await _write(reduced_rows(records, refused)):
        raise calls.never("the rows of this run", refused)


async def _write(records: RunRecords) -> str:
    try:
        await workflow.execute_local_activity(record_run, records, summary=wrote(records), **LOCAL)
    except (ActivityError, ApplicationError) as error:
        return calls.refusal(error)
    return ""


async def plan(firing: Firing) -> Planned:
    """The pipeline as it is at this moment."""
    return await workflow.execute_local_activity(plan_run, firing, summary=f"a run of {firing.pipeline}", **LOCAL)
