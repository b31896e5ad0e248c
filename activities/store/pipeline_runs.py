"""Runs of pipelines and their stages. Rows are written by revision: late and repeated writes do no harm."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row, bindparam, select, tuple_, update

from activities.store import schema
from activities.store.database import insert_new, upsert
from workflows.pipeline.plan import OPEN_RUNS, RunState, StageOutcome
from workflows.pipeline.records import RunRecord, RunRecords, StageRecord
from workflows.pipeline.rows import ended_row

runs, stages = schema.pipeline_runs, schema.pipeline_stages
_OLDER = update(runs).where(runs.c.run_id == bindparam("of_run"), runs.c.revision < bindparam("newest"))


@dataclass(frozen=True)
class Begun:
    """What a run was started with, in full."""

    definition: str
    payload: dict[str, str]


@dataclass(frozen=True)
class StoredRun:
    """A run as it is kept."""

    record: RunRecord
    begun: Begun


def write(engine: Engine, records: RunRecords, begun: Begun | None = None) -> None:
    """Write one step of a run in one transaction; `begun` comes with the first."""
    run = records.run.model_dump(mode="json")
    with engine.begin() as connection:
        if begun is not None:
            insert_new(connection, runs, [run | {"definition": begun.definition, "payload": begun.payload}])
        if records.run.revision:
            connection.execute(_OLDER, run | {"of_run": records.run.run_id, "newest": records.run.revision})
        rows = [stage.model_dump(mode="json") for stage in records.stages]
        upsert(connection, stages, rows, only_if_newer="revision")


def stage_begins(engine: Engine, row: StageRecord) -> None:
    """One attempt of a shell stage begins, however often its activity is called."""
    _put_stage(engine, row)


def stage_ends(engine: Engine, row: StageRecord, outcome: StageOutcome) -> None:
    """The attempt is over; its end is written before anything is told of it."""
    if ended := ended_row(row, outcome, time.time()):
        _put_stage(engine, ended)


def _put_stage(engine: Engine, row: StageRecord) -> None:
    with engine.begin() as connection:
        upsert(connection, stages, [row.model_dump(mode="json")], only_if_newer="revision")


def get(engine: Engine, run_id: str) -> StoredRun | None:
    with engine.connect() as connection:
        row = connection.execute(select(runs).where(runs.c.run_id == run_id)).one_or_none()
    return StoredRun(_run(row), Begun(row.definition, row.payload)) if row else None


def stages_of(engine: Engine, run_id: str) -> list[StageRecord]:
    """In the definition's order."""
    query = select(stages).where(stages.c.run_id == run_id).order_by(stages.c.number)
    with engine.connect() as connection:
        return [StageRecord.model_validate(dict(row._mapping)) for row in connection.execute(query)]


def active(engine: Engine, pipeline: str) -> RunRecord | None:
    """The run of a pipeline that has not ended."""
    return next(iter(find(engine, pipeline=pipeline, states=sorted(OPEN_RUNS), limit=1)), None)


def find(
    engine: Engine,
    *,
    pipeline: str | None = None,
    repo: str | None = None,
    states: Sequence[RunState] = (),
    before: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[RunRecord]:
    """The newest runs that match, below a place in that order."""
    query = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc()).limit(limit)
    if pipeline:
        query = query.where(runs.c.pipeline == pipeline)
    if repo:
        query = query.where(runs.c.repo == repo)
    if states:
        query = query.where(runs.c.state.in_(states))
    if before:
        query = query.where(tuple_(runs.c.started_at, runs.c.run_id) < tuple_(*before))
    with engine.connect() as connection:
        return [_run(row) for row in connection.execute(query)]


def _run(row: Row[Any]) -> RunRecord:
    return RunRecord.model_validate(dict(row._mapping))
