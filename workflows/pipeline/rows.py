"""A run and its stages as the rows people read."""

from workflows.pipeline.plan import RunInput, RunState
from workflows.pipeline.records import RunRecord, RunRecords, StageRecord
from workflows.pipeline.state import RunMemory, StageMemory, new_run


def run_row(run: RunMemory) -> RunRecord:
    return RunRecord(
        run_id=run.input.run_id,
        pipeline=run.input.pipeline,
        repo=run.input.repo,
        trigger=run.input.trigger,
        state=run.state,
        reason=run.reason,
        halt_stage=run.halt_stage,
        revision=run.revision,
        started_at=run.input.created_at,
        finished_at=run.finished_at,
        tokens=run.usage.total,
        cost_usd=run.cost_usd,
    )


def stage_row(run: RunMemory, stage: StageMemory) -> StageRecord:
    return StageRecord(
        run_id=run.input.run_id,
        stage_id=stage.plan.id,
        number=stage.number,
        kind=stage.plan.kind,
        needs=stage.plan.needs,
        state=stage.state,
        reason=stage.reason,
        revision=run.revision,
        attempt=stage.attempt,
        job_id=stage.job_id,
        decision=stage.decision,
        summary=stage.summary,
        started_at=stage.started_at,
        finished_at=stage.finished_at,
        tokens=stage.usage.total,
    )


def first_rows(start: RunInput) -> RunRecords:
    """A run that Temporal has taken and no worker has begun."""
    run = new_run(start)
    stages = tuple(stage_row(run, stage) for stage in run.stages.values())
    return RunRecords(run=run_row(run), stages=stages, begins=start)


def skipped_rows(start: RunInput, reason: str, state: RunState = RunState.SKIPPED) -> RunRecords:
    """A run that never was, and why: its schedule fired all the same."""
    run = new_run(start)
    run.state, run.reason, run.finished_at, run.revision = state, reason, start.created_at, 1
    return RunRecords(run=run_row(run), begins=start.model_copy(update={"stages": ()}))
