"""The reducer of a pipeline run: `reduce` handles every event and returns the commands to carry out (ruling K1)."""

from collections.abc import Iterator
from copy import copy
from typing import assert_never

from workflows.contract.storable import short_line
from workflows.model import ids
from workflows.model.ids import task_id
from workflows.model.spend import Usage
from workflows.pipeline.commands import (
    CancelStage,
    CloseRun,
    Command,
    PauseStage,
    RecordRows,
    ReopenTree,
    RunShell,
    RunTree,
)
from workflows.pipeline.events import (
    AttentionChanged,
    CancelRequested,
    Event,
    RetryDue,
    RunStarted,
    StageEnded,
    StageReopened,
)
from workflows.pipeline.plan import OPEN_RUNS, PlannedAgent, PlannedShell, RunState, StageOutcome, StageState
from workflows.pipeline.rows import RunRecords, StageRecord, run_row, stage_row, tells_its_end
from workflows.pipeline.stages import StageRun
from workflows.pipeline.state import RunMemory, StageMemory
from workflows.policy.backoff import retry_backoff
from workflows.text.durations import format_duration
from workflows.tree.state import TreeInput

_WORTH_A_RETRY = frozenset({StageState.FAILED, StageState.BLOCKED})
_SUCCEEDED = StageState.SUCCEEDED
TITLE_LIMIT = 80


def reduce(run: RunMemory, event: Event) -> list[Command]:
    """Apply an event to the run, and return the commands to carry out. An event that does not apply changes nothing."""
    if run.is_closed and not isinstance(event, StageReopened):
        return []
    step = _RunStep(run, event.now)
    match event:
        case RunStarted():
            run.state = RunState.RUNNING
        case StageEnded():
            step.end_attempt(run.stages[event.stage_id], event.attempt, event.outcome)
        case RetryDue():
            run.stages[event.stage_id].pausing = False
        case AttentionChanged():
            step.attention(event.job_id, event.waits_for)
        case StageReopened():
            if not step.reopen(run.stages[event.stage_id], event.job_id):
                return []
        case CancelRequested():
            step.cancel(short_line(event.actor))
        case _ as never:
            assert_never(never)
    step.advance()
    return step.finish()


class _RunStep:
    """One step of the reducer. It collects commands while the rules run; `finish` returns them, rows first."""

    def __init__(self, run: RunMemory, now: float) -> None:
        self.run = run
        run.now = max(run.now, now)
        self._revision = run.revision = run.revision + 1
        self._before = {name: copy(stage) for name, stage in run.stages.items()}
        self._row_before = run_row(run, self._revision)
        self._begun, self._told = set[str](), set[str]()
        self._commands: list[Command] = []

    def end_attempt(self, stage: StageMemory, attempt: int, outcome: StageOutcome) -> None:
        """Handle the end of an attempt, once. A failed attempt is retried if retries are left, unless the run was
        cancelled.
        """
        if stage.state is not StageState.RUNNING or stage.attempt != attempt:
            return
        run = self.run
        run.usage, run.cost_usd = run.usage + outcome.usage, run.cost_usd + outcome.cost_usd
        run.price_assumed = run.price_assumed or outcome.price_assumed
        stage.usage, stage.waits_for = stage.usage + outcome.usage, ""
        stage.counted, stage.counted_usd = outcome.usage, outcome.cost_usd
        stage.decision, stage.summary, stage.reason = outcome.decision, outcome.summary, outcome.reason
        stage.branches = outcome.branches
        if outcome.moved and not run.cancelled_by:  # `advance` starts its next attempt at once
            stage.state, stage.moves = StageState.PENDING, stage.moves + 1
            return
        failures = attempt - stage.moves
        again = outcome.state in _WORTH_A_RETRY and not outcome.cut_short
        if again and failures <= stage.plan.retry and not run.cancelled_by:
            seconds = retry_backoff(failures - 1)
            begins = f"attempt {attempt + 1} begins after {format_duration(seconds)}"
            stage.state, stage.pausing = StageState.PENDING, True
            stage.reason = f"{stage.reason or 'it failed'}; {begins}"
            self._commands.append(PauseStage(stage.plan.id, seconds, f"{stage.plan.id}: {begins}"))
            return
        stage.state, stage.finished_at = outcome.state, run.now
        if stage.state is not StageState.SUCCEEDED:
            run.halt_stage = run.halt_stage or stage.plan.id
        if tells_its_end(stage.plan.kind, stage.state):
            self._told.add(stage.plan.id)

    def reopen(self, stage: StageMemory, job_id: str) -> bool:
        """Continue a stage whose blocked tree was re-opened, and queue the stages that were skipped because of it.
        Return False if that is not possible.
        """
        run = self.run
        waits = stage.state in _WORTH_A_RETRY or stage.pausing
        if run.cancelled_by or stage.job_id != job_id or not waits or not isinstance(stage.plan, PlannedAgent):
            return False
        if stage.pausing:
            self._commands.append(CancelStage(stage.plan.id))
        stage.state, stage.pausing, stage.finished_at = StageState.RUNNING, False, None
        stage.reason, stage.decision, stage.summary = "", None, ""
        run.usage, stage.usage = run.usage.less(stage.counted), stage.usage.less(stage.counted)
        run.cost_usd, stage.counted, stage.counted_usd = run.cost_usd - stage.counted_usd, Usage(), 0.0
        for skipped in (one for one in run.stages.values() if one.state is StageState.SKIPPED):
            skipped.state, skipped.reason, skipped.finished_at = StageState.PENDING, "", None
        ended_badly = (name for name, one in run.stages.items() if one.has_ended and one.state is not _SUCCEEDED)
        run.state, run.reason, run.finished_at, run.halt_stage = RunState.RUNNING, "", None, next(ended_badly, None)
        self._commands.append(ReopenTree(stage.plan.id, stage.attempt, job_id, stage.plan.success))
        return True

    def attention(self, job_id: str, waits_for: str) -> None:
        for stage in self.run.stages.values():
            if stage.job_id == job_id and stage.state is StageState.RUNNING:
                stage.waits_for = waits_for

    def cancel(self, actor: str) -> None:
        """Stop running stages, and cancel waiting ones. A second cancel changes nothing."""
        run = self.run
        if run.cancelled_by:
            return
        run.cancelled_by, run.last_refusal = actor, ""
        for stage in run.stages.values():
            if stage.state is StageState.RUNNING or stage.pausing:
                self._commands.append(CancelStage(stage.plan.id))
            if stage.state is StageState.PENDING:
                stage.state, stage.finished_at, stage.pausing = StageState.CANCELLED, run.now, False
                stage.reason = f"the run was cancelled by {actor}"

    def advance(self) -> None:
        """Start or skip every stage that can be started or skipped now."""
        run = self.run
        while any(self._skip(stage) for stage in run.stages.values()):
            pass
        for stage in run.stages.values():
            if stage.state is StageState.PENDING and not stage.pausing and not run.waiting and not run.unmet(stage):
                self._start(stage)
        self._settle()

    def _skip(self, stage: StageMemory) -> bool:
        """Skip a stage that can never run, because a stage that it needs did not succeed."""
        lost = next((need for need in self.run.unmet(stage) if need.has_ended), None)
        if stage.state is not StageState.PENDING or stage.pausing or lost is None:
            return False
        stage.state, stage.finished_at = StageState.SKIPPED, self.run.now
        how = "was skipped" if lost.state is StageState.SKIPPED else lost.state.value
        stage.reason = f"it needs {lost.plan.id}, which {how}"
        return True

    def _start(self, stage: StageMemory) -> None:
        run, plan = self.run, stage.plan
        stage.attempt += 1
        stage.state, stage.reason, stage.decision, stage.summary = StageState.RUNNING, "", None, ""
        stage.started_at = run.now if stage.started_at is None else stage.started_at
        match plan:
            case PlannedShell():
                self._commands.append(RunShell(self._shell(stage, plan)))
            case PlannedAgent():
                tree = self._tree(stage, plan)
                stage.job_id = tree.root_job_id
                self._commands.append(RunTree(plan.id, stage.attempt, tree, plan.success))
            case _ as never:
                assert_never(never)

    def _shell(self, stage: StageMemory, plan: PlannedShell) -> StageRun:
        """Build the input of a shell stage's attempt. Its activity writes the stage's rows at start and success, so a
        revision is reserved for each.
        """
        start = self.run.input
        self.run.revision += 2
        self._begun.add(plan.id)
        return StageRun(
            run_id=start.run_id,
            job_id=f"{start.run_id}.{stage.number}",
            pipeline=start.pipeline,
            stage_id=plan.id,
            attempt=stage.attempt,
            repo=start.repo,
            script=plan.script,
            payload=start.payload,
            timeout_seconds=plan.timeout_seconds,
            base=start.base,
            pull_request=start.pull_request,
            issue=start.issue,
            branch_deps=self.run.branches_for(stage),
            require=plan.require,
            prefer=plan.prefer,
            row=stage_row(self.run, stage, self.run.revision - 1),
        )

    def _tree(self, stage: StageMemory, plan: PlannedAgent) -> TreeInput:
        start = self.run.input
        root = ids.tree_id(start.run_id, start.created_at, stage.number, stage.attempt)
        return TreeInput(
            root_job_id=root,
            task_id=task_id(root),
            title=f"{start.pipeline}: {plan.id}"[:TITLE_LIMIT],
            repo=start.repo,
            assignment=plan.assignment.model_copy(update={"base": plan.assignment.base or start.base}),
            created_at=self.run.now,
            settings=start.settings,
            branch_deps=self.run.branches_for(stage),
            require=plan.require,
            prefer=plan.prefer,
            pipeline=start.pipeline,
        )

    def _settle(self) -> None:
        """Update the run's own state, and end it when every stage has ended."""
        run = self.run
        if run.is_over:
            run.state, run.reason, run.finished_at = *_verdict(run), run.now
        elif run.state in OPEN_RUNS:
            waiting = run.waiting
            run.state = RunState.AWAITING_HUMAN if waiting else RunState.RUNNING
            run.reason = "; ".join(
                [
                    f"stage {asking.plan.id} waits for people ({asking.waits_for}): service attention"
                    for asking in waiting
                ]
            )

    def finish(self) -> list[Command]:
        """Return one record of all changes, if any, then the commands, and last the run's end if it has ended."""
        run, row = self.run, run_row(self.run, self._revision)
        rows, begins = tuple(self._rows()), None if run.told else run.input
        if not (rows or begins or row != self._row_before):
            return self._commands
        trees = tuple(command.tree for command in self._commands if isinstance(command, RunTree))
        run.told = True
        records = RunRecords(run=row, stages=rows, begins=begins, trees=trees, host=run.input.host)
        return [RecordRows(records), *self._commands, *([_close(run)] if run.is_closed else [])]

    def _rows(self) -> Iterator[StageRecord]:
        """Yield the changed rows, except those that activities write: a shell stage's rows at its start and success."""
        for name, stage in self.run.stages.items():
            before = self._before[name]
            known = before if name in self._begun else stage
            if not self.run.told or (known != before and name not in self._told):
                yield stage_row(self.run, known, self._revision)


def _verdict(run: RunMemory) -> tuple[RunState, str]:
    halted = run.stages[run.halt_stage] if run.halt_stage else None
    if all(stage.state is StageState.SUCCEEDED for stage in run.stages.values()):
        return RunState.SUCCEEDED, ""
    if run.cancelled_by:
        return RunState.CANCELLED, f"cancelled by {run.cancelled_by}"
    if halted is None:
        raise AssertionError(f"the run {run.input.run_id} ended without a stage that halted it")
    return RunState(halted.state.value), f"stage {halted.plan.id} {halted.state}: {halted.reason}".rstrip(": ")


def _close(run: RunMemory) -> CloseRun:
    return CloseRun(
        run_id=run.input.run_id,
        state=run.state,
        reason=run.reason,
        halt_stage=run.halt_stage,
        tokens=run.usage.total,
        cost_usd=run.cost_usd,
        price_assumed=run.price_assumed,
    )
