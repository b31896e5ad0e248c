"""The rows of a run and its stages, made from its memory; their fields are in `records`."""

from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunInput, RunState, StageOutcome, StageState
from workflows.pipeline.records import RunRecord, RunRecords, StageRecord
from workflows.pipeline.state import RunMemory, StageMemory, new_run
from workflows.policy.storable_rows import text


def run_row(run: RunMemory, revision: int) -> RunRecord:
    return RunRecord(
        run_id=run.input.run_id,
        pipeline=run.input.pipeline,
        repo=run.input.repo,
        pull_request=run.input.pull_request,
        issue=run.input.issue,
        trigger=run.input.trigger,
        state=run.state,
        reason=run.reason,
        halt_stage=run.halt_stage,
        revision=revision,
        started_at=run.input.created_at,
        finished_at=run.finished_at,
        tokens=run.usage.total,
        cost_usd=run.cost_usd,
        price_assumed=run.price_assumed,
    )


def stage_row(run: RunMemory, stage: StageMemory, revision: int) -> StageRecord:
    return StageRecord(
        run_id=run.input.run_id,
        stage_id=stage.plan.id,
        number=stage.number,
        kind=stage.plan.kind,
        needs=stage.plan.needs,
        state=stage.state,
        reason=stage.reason,
        revision=revision,
        attempt=stage.attempt,
        job_id=stage.job_id,
        decision=stage.decision,
        summary=stage.summary,
        started_at=stage.started_at,
        finished_at=stage.finished_at,
        tokens=stage.usage.total,
    )


def tells_its_end(kind: StageKind, state: StageState) -> bool:
    """Return whether the stage's own activity writes this end; all other ends are written by the run."""
    return kind is StageKind.SHELL and state is StageState.SUCCEEDED


def ended_row(running: StageRecord, outcome: StageOutcome, now: float) -> StageRecord | None:
    """Return the row the stage's activity writes at its end, if any; its revision was reserved."""
    if not tells_its_end(running.kind, outcome.state):
        return None
    return running.model_copy(
        update={
            "state": outcome.state,
            "summary": outcome.summary,
            "revision": running.revision + 1,
            "finished_at": now,
        }
    )


def first_rows(start: RunInput) -> RunRecords:
    """Return the rows of a run that Temporal has accepted and no worker has begun."""
    run = new_run(start)
    stages = tuple(stage_row(run, stage, 0) for stage in run.stages.values())
    return RunRecords(run=run_row(run, 0), stages=stages, begins=start)


def reduced_rows(records: RunRecords, why: str) -> RunRecords:
    """Return shortened rows that are certain to fit, with the reason (ruling B6)."""
    reason = f"the store refused what was to be written: {text(why)} {text(records.run.reason)}".strip()
    stages = (
        stage.model_copy(update={"reason": text(stage.reason), "summary": text(stage.summary)})
        for stage in records.stages
    )
    run = records.run.model_copy(update={"reason": reason})
    return records.model_copy(update={"run": run, "stages": tuple(stages)})


def skipped_rows(start: RunInput, reason: str, state: RunState = RunState.SKIPPED) -> RunRecords:
    """Return the rows of a scheduled run that was not started, with the reason, so that people see it."""
    run = new_run(start)
    run.state, run.reason, run.finished_at = state, reason, start.created_at
    return RunRecords(run=run_row(run, 1), begins=start.model_copy(update={"stages": ()}))
