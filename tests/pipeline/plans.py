"""Runs for tests: concise stages, and a player that carries out commands by hand."""

from collections import Counter
from collections.abc import Mapping

from workflows.contract.models import Action
from workflows.model.long_texts import Text
from workflows.model.workers import Assignment, Worker
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
from workflows.pipeline.events import CancelRequested, Event, RetryDue, RunStarted, StageEnded, StageReopened
from workflows.pipeline.plan import Planned, PlannedAgent, PlannedShell, RunInput, StageOutcome, StageState, Trigger
from workflows.pipeline.reducer import reduce
from workflows.pipeline.rows import RunRecord, StageRecord, ended_row
from workflows.pipeline.state import RunMemory, new_run

SCOUT = Worker(name="scout", runtime="shell", command=("true",))


def shell(name: str, *needs: str, retry: int = 0) -> PlannedShell:
    return PlannedShell(id=name, needs=needs, retry=retry, script=Text(inline="{}"))


def agent(name: str, *needs: str, retry: int = 0, prompt: str = "do") -> PlannedAgent:
    return PlannedAgent(
        id=name,
        needs=needs,
        retry=retry,
        assignment=Assignment(worker=SCOUT, action=Action.IMPLEMENT, prompt=Text(inline=prompt)),
    )


def an_input(*stages: Planned) -> RunInput:
    return RunInput(
        run_id="prun-0123456789ab",
        pipeline="nightly",
        repo="acme/shop",
        host="here",
        trigger=Trigger.CLI,
        created_at=1000.0,
        definition=Text(inline="name: nightly"),
        stages=stages,
    )


class Player:
    """Replaces the Temporal shell, and asserts the invariants of every run."""

    def __init__(self, *stages: Planned) -> None:
        self.run: RunMemory = new_run(an_input(*stages))
        self.flying: dict[str, int] = {}
        self.timers: set[str] = set()
        self.begun: list[tuple[str, int]] = []
        self.stopped: list[str] = []
        self.trees: dict[str, str] = {}
        self.rows: dict[str, StageRecord] = {}
        self.row: RunRecord | None = None
        self.closed: list[CloseRun] = []
        self.feed(RunStarted(now=1000.0))

    @property
    def now(self) -> float:
        return self.run.now + 1

    def feed(self, event: Event) -> list[Command]:
        paused = bool(self.run.waiting)
        todo = reduce(self.run, event)
        for command in todo:
            self._take(command)
        started = [command for command in todo if isinstance(command, RunShell | RunTree)]
        assert all(self.rows[name].state is stage.state for name, stage in self.run.stages.items()), "rows tell it all"
        assert not (paused and self.run.waiting and started), "a run that waits for people starts nothing"
        assert (
            Counter(self.begun).most_common(1)[:1] in ([], [(self.begun[0], 1)])
            or max(Counter(self.begun).values()) == 1
        ), "no attempt starts twice"
        return todo

    def _take(self, command: Command) -> None:
        match command:
            case RecordRows(records=records):
                assert self.row is None or records.run.revision > self.row.revision
                self.row = records.run
                for stage in records.stages:
                    self._write(stage)
            case RunShell(run=run):
                self._write(run.row)
                self._begin(run.stage_id, run.attempt)
            case RunTree(stage_id=stage, attempt=attempt, tree=tree):
                assert tree.root_job_id not in self.trees, "each attempt has a tree of its own"
                self.trees[tree.root_job_id] = stage
                self._begin(stage, attempt)
            case ReopenTree(stage_id=stage, attempt=attempt):
                assert self.rows[stage].state is StageState.RUNNING, "rows come first"
                self.flying[stage] = attempt
            case PauseStage(stage_id=stage):
                self.timers.add(stage)
            case CancelStage(stage_id=stage):
                self.stopped.append(stage)
                self.timers.discard(stage)
            case CloseRun():
                self.closed.append(command)

    def _write(self, row: StageRecord) -> None:
        known = self.rows.get(row.stage_id)
        assert known is None or row.revision > known.revision, "late rows change nothing, and none of these is late"
        self.rows[row.stage_id] = row

    def _begin(self, stage: str, attempt: int) -> None:
        needs = self.run.stages[stage].plan.needs
        assert all(self.rows[need].state is StageState.SUCCEEDED for need in needs), "needs come first"
        assert self.rows[stage].state is StageState.RUNNING, "rows come first"
        assert not self.run.cancelled_by, "a cancelled run starts nothing"
        self.flying[stage] = attempt
        self.begun.append((stage, attempt))

    def end(self, stage: str, state: StageState = StageState.SUCCEEDED, **fields: object) -> list[Command]:
        outcome = StageOutcome.model_validate({"state": state} | fields)
        if row := ended_row(self.rows[stage], outcome, self.now):
            self._write(row)
        return self.feed(StageEnded(self.now, stage, self.flying.pop(stage), outcome))

    def reopen(self, stage: str, job_id: str) -> list[Command]:
        """An operator runs a leg of the stage's blocked tree again."""
        return self.feed(StageReopened(self.now, stage, job_id))

    def due(self, stage: str) -> None:
        self.timers.remove(stage)
        self.feed(RetryDue(self.now, stage))

    def cancel(self, actor: str = "ann") -> None:
        self.feed(CancelRequested(self.now, actor))

    def job_of(self, stage: str) -> str:
        return self.run.stages[stage].job_id or ""

    @property
    def states(self) -> Mapping[str, str]:
        return {name: row.state.value for name, row in self.rows.items()}
