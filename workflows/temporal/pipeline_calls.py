"""The activities of pipeline workflows: names and types. Their implementations are in `activities`."""

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from workflows.model.wire import Wire
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunInput, StageOutcome, StageState
from workflows.pipeline.rows import RunRecords, reduced_rows
from workflows.pipeline.stages import StageRun
from workflows.pipeline.view import wrote
from workflows.temporal import writes
from workflows.temporal.attempts import TakenBack, on_host, why
from workflows.temporal.calls import LOCAL, OfferKey
from workflows.temporal.moving import Moved, Moves
from workflows.temporal.placing import Unplaced
from workflows.text.markdown import summary_line


class Firing(Wire):
    """A schedule's request for a run."""

    pipeline: str
    run_id: str = ""
    """The run's id, chosen by the workflow once for each firing."""


class PlannedRun(Wire):
    """The input of the run to start; or the reason why none is started."""

    start: RunInput
    refused: str = ""


@activity.defn
def run_stage(run: StageRun) -> StageOutcome:
    """Run one attempt of a shell stage to its end, on its host."""
    raise NotImplementedError


@activity.defn
def record_run(records: RunRecords) -> None:
    """Write rows of a run. Idempotent."""
    raise NotImplementedError


@activity.defn
def plan_run(firing: Firing) -> PlannedRun:
    """Build the input of a scheduled run from the pipeline's current definition."""
    raise NotImplementedError


async def attempt(run: StageRun, host: str, moves: Moves, *, placed: bool = False) -> StageOutcome:
    """Run one attempt of a shell stage, and return its outcome; every failure is an outcome too."""
    needs = Unplaced(
        offer=OfferKey(job_id=run.job_id, attempt=run.attempt),
        root=run.run_id,
        repo=run.repo,
        runtime=StageKind.SHELL.value,
        stage=run.stage_id,
        host=host,
        require=run.require,
        prefer=run.prefer,
    )
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    summary = summary_line(f"{run.pipeline} / {run.stage_id}", f"shell{again}")
    try:
        outcome = await on_host(run_stage, run, needs, moves, placed=placed, summary=summary)
        if outcome.of in ("", run.attempt_name):
            return outcome
        reason = f"the outcome that came back is of {outcome.of}, not of this attempt: it is rejected"
        return StageOutcome(state=StageState.FAILED, reason=reason)
    except Moved as moved:
        return StageOutcome.model_validate(moved.outcome)
    except TakenBack:
        return StageOutcome(state=StageState.CANCELLED, reason="stopped before it began")
    except (ActivityError, ApplicationError) as error:
        state = StageState.CANCELLED if is_cancelled_exception(error) else StageState.FAILED
        return StageOutcome(state=state, reason=why(error))


async def write(records: RunRecords) -> None:
    """Write rows in a local activity: one event in the history, no round trip.

    Rows that the store rejects permanently are written shortened; if it rejects even those, the workflow fails (ruling
    B6).
    """
    if not (refused := await _write(records)):
        return
    if refused := await _write(reduced_rows(records, refused)):
        raise writes.never("the rows of this run", refused)


async def _write(records: RunRecords) -> str:
    try:
        await workflow.execute_local_activity(record_run, records, summary=wrote(records), **LOCAL)
    except (ActivityError, ApplicationError) as error:
        return writes.refusal(error)
    return ""


async def plan(firing: Firing) -> PlannedRun:
    """Build the input of a run from the current pipeline, in a local activity."""
    return await workflow.execute_local_activity(plan_run, firing, summary=f"plan a run of {firing.pipeline}", **LOCAL)
