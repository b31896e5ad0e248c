"""Reading runs of pipelines: one run, a page of them, the output of a stage (ruling J5)."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from activities.runs.output import last_lines
from activities.store import attempt_rows, run_rows
from bridge.operations import paging
from bridge.operations.jobs.binding_view import Belonging, belonging
from bridge.operations.jobs.hosts import OtherHost
from bridge.operations.service import Service
from workflows.contract.models import Decision
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError, with_nearest
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunState, StageOutcome, StageState, Trigger
from workflows.pipeline.rows import RunRecord, StageRecord

MOST_LISTED = 1000
MOST_SHOWN = 12_000
"""The number of characters shown of a running stage's output."""


class ActiveRunError(RefusedError):
    """The pipeline already has an active run (ruling J4)."""

    code = "active_run"


class _RunModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StageView(_RunModel):
    """A stage of a run (ruling J5)."""

    id: str
    kind: StageKind
    needs: tuple[str, ...]
    state: StageState
    attempt: int
    job_id: str | None
    decision: Decision | None
    summary: str
    """The stage's summary; without one, the reason for its state."""
    started_at: float | None
    finished_at: float | None
    tokens: int


class RunFields(_RunModel):
    """The fields that every view of a run has."""

    id: str
    pipeline: str
    pull_request: int | None
    issue: int | None
    trigger: Trigger
    state: RunState
    reason: str
    halt_stage: str | None
    started_at: float
    finished_at: float | None
    tokens: int
    cost_usd: float
    price_assumed: bool


class RunView(RunFields):
    """A run with its stages (ruling J5)."""

    belongs_to: Belonging
    """The pull request or issue, for people."""
    payload: dict[str, str]
    stages: tuple[StageView, ...]


class RunLine(RunFields):
    """A run in a list."""

    repo: str


@dataclass(frozen=True)
class RunFilter:
    """The filter of a list of runs."""

    pipeline: str | None = None
    repo: str | None = None
    state: str | None = None
    limit: int = 50
    cursor: str | None = None


class RunList(BaseModel):
    """A page of runs, newest first."""

    runs: tuple[RunLine, ...]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


@dataclass(frozen=True)
class StageOutput:
    """Beginning and end of the output of a shell stage's attempt, without secrets."""

    run_id: str
    stage: str
    state: StageState
    attempt: int
    said: str
    """The stage's full summary, or the full reason for its outcome."""
    output: str
    stderr: str


def get(service: Service, run_id: str) -> run_rows.StoredRun:
    """Return a stored run; raise `NotFoundError` if it does not exist."""
    run = run_rows.get(service.store, run_id)
    if run is None:
        raise NotFoundError(f"no run {run_id}", "service pipeline runs")
    return run


def show_run(service: Service, run_id: str) -> RunView:
    """Return a run with its stages (ruling J5)."""
    run = get(service, run_id)
    return RunView(
        **run.record.model_dump(include=set(RunView.model_fields)),
        id=run_id,
        belongs_to=belonging(service, run.record),
        payload=run.begun.payload,
        stages=tuple(_stage(stage) for stage in run_rows.stages_of(service.store, run_id)),
    )


def definition_of_run(service: Service, run_id: str) -> str:
    """Return the definition's file as it was when the run started (ruling J4)."""
    return get(service, run_id).begun.definition


def list_runs(service: Service, wanted: RunFilter) -> RunList:
    """Return the newest runs that match."""
    if wanted.state is not None and wanted.state not in list(RunState):
        error = UsageError(f"{wanted.state!r} is not a state of a run; they are {', '.join(RunState)}")
        raise with_nearest(error, wanted.state, RunState)
    if not 1 <= wanted.limit <= MOST_LISTED:
        raise UsageError(f"limit must be 1 to {MOST_LISTED}, not {wanted.limit}")
    records = run_rows.find(
        service.store,
        pipeline=wanted.pipeline,
        repo=wanted.repo,
        states=(RunState(wanted.state),) if wanted.state else (),
        before=paging.place(wanted.cursor),
        limit=wanted.limit + 1,
    )
    shown, more = paging.page(records, wanted.limit + 1, lambda run: (run.started_at, run.run_id))
    return RunList(runs=tuple(map(_line, shown)), next_cursor=more)


def latest(service: Service) -> dict[str, RunLine]:
    """Return the newest run of each pipeline."""
    return {name: _line(run) for name, run in run_rows.latest(service.store).items()}


def active(service: Service, pipeline: str) -> RunLine | None:
    """Return the pipeline's active run, if any; no other can start meanwhile."""
    run = run_rows.active(service.store, pipeline)
    return _line(run) if run else None


def stage_output(service: Service, run_id: str, stage_id: str, attempt: int | None = None) -> StageOutput:
    """Return the output of a shell stage's latest attempt, or of the given one."""
    stage = _stage_of(service, run_id, stage_id)
    if stage.kind is not StageKind.SHELL:
        hint = f"service job show {stage.job_id}" if stage.job_id else f"service pipeline show {run_id}"
        raise RefusedError(f"stage {stage_id} is an agent's: its output is in its job", hint)
    number = attempt or stage.attempt
    row = attempt_rows.get(service.store, f"{run_id}.{stage.number}", number)
    if row is None or row.diagnostics is None:
        how = f"has no recorded attempt {number}" if number else f"has not begun ({stage.state})"
        raise NotFoundError(f"stage {stage_id} of {run_id} {how}", f"service pipeline show {run_id}")
    ended, printed = StageOutcome.model_validate(row.outcome), row.diagnostics
    return StageOutput(
        run_id=run_id,
        stage=stage_id,
        state=ended.state,
        attempt=number,
        said=ended.reason or ended.summary,
        output=printed.get("output", ""),
        stderr=printed.get("stderr", ""),
    )


def stage_so_far(service: Service, run_id: str, stage_id: str) -> StageOutput | None:
    """Return the output of a running shell stage up to now; None if it does not run, or its host can't be asked."""
    stage = _stage_of(service, run_id, stage_id)
    if stage.kind is not StageKind.SHELL or stage.state is not StageState.RUNNING:
        return None
    row = attempt_rows.get(service.store, f"{run_id}.{stage.number}", stage.attempt)
    if row is None:
        return None
    if row.host != service.settings.host:
        with suppress(ServiceError):
            there = OtherHost(service, row.host, f"stage {stage_id} runs", f"service pipeline show {run_id}")
            return TypeAdapter(StageOutput | None).validate_json(there.text(f"runs/{run_id}/{stage_id}/output"))
        return None
    output, stderr = (last_lines(Path(row.run_dir) / f"{name}.log", MOST_SHOWN) for name in ("stdout", "stderr"))
    return StageOutput(run_id, stage_id, stage.state, stage.attempt, "", output, stderr)


def _stage_of(service: Service, run_id: str, stage_id: str) -> StageRecord:
    stages = {stage.stage_id: stage for stage in run_rows.stages_of(service.store, get(service, run_id).record.run_id)}
    if stage_id not in stages:
        raise NotFoundError(f"{run_id} has no stage {stage_id}; it has {', '.join(stages)}")
    return stages[stage_id]


def _stage(stage: StageRecord) -> StageView:
    shown = stage.model_dump(include=set(StageView.model_fields))
    return StageView(**shown | {"id": stage.stage_id, "summary": stage.summary or stage.reason})


def _line(run: RunRecord) -> RunLine:
    return RunLine(**run.model_dump(include=set(RunLine.model_fields)), id=run.run_id)
