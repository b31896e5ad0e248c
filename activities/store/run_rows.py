"""Runs of pipelines and their stages; and which trees and runs are over, so that their data can be removed (`over`, for
`service gc`).

Only a higher revision replaces a stored row, so late and repeated writes do no harm.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, select, tuple_, update

from activities.store import queries, schema
from activities.store.queries import Database, insert_new, one, rows, scalar, scalars, upsert
from workflows.model.states import ENDED_JOBS, ENDED_TASKS
from workflows.pipeline.plan import OPEN_RUNS, RunState, StageOutcome, StageState
from workflows.pipeline.rows import RunRecord, RunRecords, StageRecord, ended_row

runs, stages = schema.pipeline_runs, schema.pipeline_stages


@dataclass(frozen=True)
class RunStart:
    """The definition and payload that a run was started with, in full."""

    definition: str
    payload: dict[str, str]


@dataclass(frozen=True)
class StoredRun:
    """A stored run."""

    record: RunRecord
    begun: RunStart


def write(engine: Engine, records: RunRecords, begun: RunStart | None = None) -> None:
    """Write one step of a run in one transaction; `begun` comes with the first."""
    with engine.begin() as connection:
        if begun is not None:
            row = records.run.model_dump(mode="json") | {"definition": begun.definition, "payload": begun.payload}
            insert_new(connection, runs, row)
        _write(connection, records)


def close_lost(engine: Engine, run_id: str, why: str) -> bool:
    """End every open row of a run whose workflow is gone. Return False if the run has ended; of several callers, only
    the first records the end.
    """
    with engine.begin() as connection:
        row = one(connection, select(runs).where(runs.c.run_id == run_id))
        if row is None or row.state not in OPEN_RUNS:
            return False
        run, left = _run(row), {"finished_at": time.time(), "reason": why}
        cancelled = [
            stage.model_copy(update=left | {"revision": stage.revision + 1, "state": StageState.CANCELLED})
            for stage in _stages(connection, run_id)
            if not stage.state.has_ended
        ]
        over = f"{why}; start it again: service pipeline run {run.pipeline}"
        ended = left | {"reason": over, "revision": run.revision + 1, "state": RunState.CANCELLED}
        _write(connection, RunRecords(run=run.model_copy(update=ended), stages=tuple(cancelled)))
    return True


def _write(connection: Connection, records: RunRecords) -> None:
    run = records.run
    if run.revision:
        older = (runs.c.run_id == run.run_id) & (runs.c.revision < run.revision)
        queries.write(connection, update(runs).where(older).values(run.model_dump(mode="json")))
    _write_stages(connection, records.stages)


def stage_begins(engine: Engine, row: StageRecord) -> None:
    """Record the begin of an attempt of a shell stage. Idempotent."""
    _write_stages(engine, (row,))


def stage_waits(engine: Engine, run_id: str, stage_id: str, reason: str) -> None:
    """Record why a shell stage waits for a host or a hub; its next row replaces it."""
    row = (stages.c.run_id == run_id) & (stages.c.stage_id == stage_id) & stages.c.finished_at.is_(None)
    queries.write(engine, update(stages).where(row).values(reason=reason))


def stage_ends(engine: Engine, row: StageRecord, outcome: StageOutcome) -> None:
    """Record the end of an attempt, before anybody is notified of it."""
    if ended := ended_row(row, outcome, time.time()):
        _write_stages(engine, (ended,))


def _write_stages(store: Database, records: Sequence[StageRecord]) -> None:
    """Write rows of stages if they are newer: both the run and a stage's own activity write them."""
    upsert(store, stages, *(record.model_dump(mode="json") for record in records), only_if_newer="revision")


def get(engine: Engine, run_id: str) -> StoredRun | None:
    row = one(engine, select(runs).where(runs.c.run_id == run_id))
    return StoredRun(_run(row), RunStart(row.definition, row.payload)) if row else None


def stages_of(engine: Engine, run_id: str) -> list[StageRecord]:
    """Return the stages of a run in the definition's order. A tree's root job is named once it can be looked up."""
    jobs = select(schema.jobs.c.job_id).join(stages, stages.c.job_id == schema.jobs.c.job_id)
    records, known = _stages(engine, run_id), set(scalars(engine, jobs.where(stages.c.run_id == run_id)))
    return [stage if stage.job_id in known else stage.model_copy(update={"job_id": None}) for stage in records]


def stage_of(engine: Engine, root_job_id: str) -> StageRecord | None:
    """Return the stage whose latest tree has this root job; None if no stage has."""
    row = one(engine, select(stages).where(stages.c.job_id == root_job_id).limit(1))
    return StageRecord.model_validate(dict(row._mapping)) if row else None


def _stages(store: Database, run_id: str) -> list[StageRecord]:
    query = select(stages).where(stages.c.run_id == run_id).order_by(stages.c.number)
    return [StageRecord.model_validate(dict(row._mapping)) for row in rows(store, query)]


def active(engine: Engine, pipeline: str) -> RunRecord | None:
    """Return the run of a pipeline that has not ended."""
    return next(iter(find(engine, pipeline=pipeline, states=sorted(OPEN_RUNS), limit=1)), None)


def latest(engine: Engine) -> dict[str, RunRecord]:
    """Return the newest run of each pipeline, also of removed ones."""
    newest = select(runs.c.pipeline, func.max(runs.c.started_at)).group_by(runs.c.pipeline)
    query = select(runs).where(tuple_(runs.c.pipeline, runs.c.started_at).in_(newest)).order_by(runs.c.run_id)
    return {row.pipeline: _run(row) for row in rows(engine, query)}


def find(
    engine: Engine,
    *,
    pipeline: str | None = None,
    repo: str | None = None,
    states: Sequence[RunState] = (),
    before: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[RunRecord]:
    """Return the newest runs that match; for a further page, those after the last run of the previous one."""
    query = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc()).limit(limit)
    if pipeline:
        query = query.where(runs.c.pipeline == pipeline)
    if repo:
        query = query.where(runs.c.repo == repo)
    if states:
        query = query.where(runs.c.state.in_(states))
    if before:
        query = query.where(tuple_(runs.c.started_at, runs.c.run_id) < tuple_(*before))
    return [_run(row) for row in rows(engine, query)]


def _run(row: Row[Any]) -> RunRecord:
    return RunRecord.model_validate(dict(row._mapping))


@dataclass(frozen=True)
class Over:
    """Trees and pipeline runs that ended and cannot be reopened, by the id of their root or run."""

    owners: frozenset[str]
    """Ids of the trees and runs that ended before the given time. A person may reopen a blocked tree, but none of
    these.
    """
    since: float | None
    """Begin of the oldest tree or run that is not over; None if all are over."""
    open: int
    """Number of trees that have not ended: running, waiting for people, or blocked."""

    def has(self, job_id: str) -> bool:
        """Return whether a job, or a stage of a run, belongs to a tree or run that ended and cannot be reopened."""
        return job_id.partition(".")[0] in self.owners

    def folders(self, root: Path) -> list[Path]:
        """Return the folders of the ended trees and runs that cannot be reopened. A folder has the id of its tree or
        run as its name.
        """
        return [folder for folder in sorted(root.glob("*/")) if self.has(folder.name)]


def under_way(engine: Engine) -> list[str]:
    """Return the trees and pipeline runs that are in progress or may be opened again, the oldest first."""
    tasks, jobs, runs = schema.tasks.c, schema.jobs.c, schema.pipeline_runs.c
    at_work = select(jobs.root_job_id).where(jobs.state.not_in(ENDED_JOBS))
    trees = select(tasks.root_job_id).where(tasks.state.not_in(ENDED_TASKS) | tasks.root_job_id.in_(at_work))
    of_pipelines = select(runs.run_id).where(runs.state.in_(OPEN_RUNS))
    with engine.connect() as connection:
        of_trees = scalars(connection, trees.order_by(tasks.opened_at))
        return [*of_trees, *scalars(connection, of_pipelines.order_by(runs.started_at))]


def over(engine: Engine, before: float) -> Over:
    """Find the trees and runs that ended and cannot be reopened. A pipeline stage's tree counts only once its run has
    ended too.
    """
    tasks, jobs, runs, stages = schema.tasks.c, schema.jobs.c, schema.pipeline_runs.c, schema.pipeline_stages.c
    final = tasks.state.in_(ENDED_TASKS) & (tasks.ended_at < before)
    ended = runs.state.not_in(OPEN_RUNS) & (runs.finished_at < before)
    of_runs = select(stages.job_id).join(schema.pipeline_runs, runs.run_id == stages.run_id)
    at_work = select(jobs.root_job_id).where(jobs.state.not_in(ENDED_JOBS))
    needed = of_runs.where(~ended | runs.finished_at.is_(None), stages.job_id.is_not(None)).union(at_work)
    with engine.connect() as connection:
        roots = {*scalars(connection, select(tasks.root_job_id).where(final))} - {*scalars(connection, needed)}
        of_pipelines = scalars(connection, select(runs.run_id).where(ended))
        not_final = ~final | tasks.ended_at.is_(None) | tasks.root_job_id.in_(at_work)
        first_tree = scalar(connection, select(func.min(tasks.opened_at)).where(not_final))
        not_ended = ~ended | runs.finished_at.is_(None)
        first_run = scalar(connection, select(func.min(runs.started_at)).where(not_ended))
        unfinished = select(func.count()).select_from(schema.tasks).where(tasks.state.not_in(ENDED_TASKS))
        count = scalar(connection, unfinished) or 0
    since = min((at for at in (first_tree, first_run) if at is not None), default=None)
    return Over(frozenset(roots.union(of_pipelines)), since, count)
