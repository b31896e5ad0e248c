"""The rows of a run and its stages, made from the run's state. The run's revision makes writes idempotent."""

from workflows.contract.models import Decision
from workflows.model.wire import Wire
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunInput, RunState, StageOutcome, StageState, Trigger
from workflows.pipeline.state import RunMemory, StageMemory, new_run
from workflows.policy.storable_rows import reduce_row, text
from workflows.tree.state import TreeInput


class RunRecord(Wire):
    """A run as people see it; its definition and payload are stored once, separately."""

    run_id: str
    pipeline: str
    repo: str
    pull_request: int | None = None
    issue: int | None = None
    """The run's pull request or issue (ruling L1)."""
    trigger: Trigger
    state: RunState
    reason: str = ""
    halt_stage: str | None = None
    """The first stage that did not succeed."""
    revision: int = 0
    started_at: float
    finished_at: float | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if part of the cost is an estimate (ruling K5)."""


class StageRecord(Wire):
    """A stage of a run, as people see it."""

    run_id: str
    stage_id: str
    number: int
    """Its position in the definition, from 1."""
    kind: StageKind
    needs: tuple[str, ...]
    state: StageState
    reason: str = ""
    revision: int = 0
    attempt: int = 0
    job_id: str | None = None
    """The root of an agent stage's latest tree."""
    decision: Decision | None = None
    summary: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    tokens: int = 0


class RunRecords(Wire):
    """All row changes of one step of a run, to be written in one transaction."""

    run: RunRecord
    stages: tuple[StageRecord, ...] = ()
    begins: RunInput | None = None
    """The run's input, set only on the run's first records, which store it."""
    trees: tuple[TreeInput, ...] = ()
    """The trees of agent stages that start in this step."""
    host: str = ""
    """The host of those trees."""


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
    """Return whether the stage's own activity writes the row of this end; the run writes all others."""
    return kind is StageKind.SHELL and state is StageState.SUCCEEDED


def ended_row(running: StageRecord, outcome: StageOutcome, now: float) -> StageRecord | None:
    """Return the row that the stage's activity writes at its end, if any; a revision was reserved for it."""
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
    """Return the rows of a run that Temporal has accepted but no worker has begun."""
    run = new_run(start)
    stages = tuple(stage_row(run, stage, 0) for stage in run.stages.values())
    return RunRecords(run=run_row(run, 0), stages=stages, begins=start)


def reduced_rows(records: RunRecords, why: str) -> RunRecords:
    """Return the rows so shortened that any store accepts them, with the reason (ruling B6)."""
    reason = f"the store refused what was to be written: {text(why)} {text(records.run.reason)}".strip()
    run = records.run.model_copy(update={"reason": reason})
    return records.model_copy(update={"run": run, "stages": tuple(map(reduce_row, records.stages))})


def skipped_rows(start: RunInput, reason: str, state: RunState = RunState.SKIPPED) -> RunRecords:
    """Return the rows that show people a scheduled run that was not started, with the reason."""
    run = new_run(start)
    run.state, run.reason, run.finished_at = state, reason, start.created_at
    return RunRecords(run=run_row(run, 1), begins=start.model_copy(update={"stages": ()}))
