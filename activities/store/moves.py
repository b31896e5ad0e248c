"""Attempts that could leave their host, the decision about each, and the refs where a host keeps the work of attempts
that left it (ruling Q5).

`policy/moving` has the rule which attempts leave. As with a take-back, the claim is decided once (ruling B5). A begun
attempt that moves is closed as moved; the first record is final, so its host can record nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Select,
    String,
    case,
    cast,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    update,
)

from activities.store import attempt_rows, claim_rows, schema
from activities.store.attempt_rows import Offered
from activities.store.queries import insert_new, now, rows, scalar, write
from workflows.model.ids import workflow_id
from workflows.model.jobs import JobOutcome
from workflows.model.orders import StopReason
from workflows.model.spend import Usage
from workflows.model.states import ENDED_JOBS, JobState
from workflows.pipeline.plan import OPEN_RUNS, StageState
from workflows.policy.moving import Move, leaves

OPEN_JOBS = sorted(set(JobState) - ENDED_JOBS)

_JOB, _RUN, _STAGE = schema.jobs.c, schema.pipeline_runs.c, schema.pipeline_stages.c
_HAS_REMOTE = func.coalesce(schema.repos.c.remote, "") != ""


def give_up(engine: Engine, offered: Offered, move: Move) -> dict[str, Any] | None:
    """Return the outcome of the attempt: moved, or recorded by its host. None if the host keeps it. Idempotent."""
    with engine.begin() as connection:
        seen_at = scalar(connection, select(schema.hosts.c.seen_at).where(schema.hosts.c.name == move.host))
        row = attempt_rows.get(connection, *offered.key)
        if not leaves(move, row.host if row else None, seen_at):
            return None
        if row is None:
            begun_meanwhile = claim_rows.settle(connection, offered, begun_at=None).begun_at is not None
            return None if begun_meanwhile else _moved_outcome(connection, offered, move, None).model_dump(mode="json")
        if row.outcome is not None:
            return row.outcome
        outcome, at = _moved_outcome(connection, offered, move, row.started_at), now(connection)
        if not attempt_rows.close(connection, row, outcome, {}, {}):
            first = attempt_rows.get(connection, *offered.key)
            return first.outcome if first else None
        claim_rows.order_stop(connection, offered, StopReason.MOVED)
        moved = {"job_id": offered.job_id, "attempt": offered.attempt, "host": move.host}
        insert_new(connection, schema.moves, moved | {"reason": move.reason, "at": at})
        return outcome.model_dump(mode="json")


def _moved_outcome(connection: Connection, offered: Offered, move: Move, begun_at: float | None) -> JobOutcome:
    """Return the outcome of an attempt that moves, with the tokens that its deferred tries have recorded."""
    used = schema.deferrals.c
    query = select(func.sum(used.input_tokens), func.sum(used.output_tokens), func.sum(used.requests))
    [(read, written, requests)] = rows(connection, query.where(attempt_rows.is_of(schema.deferrals, offered)))
    return JobOutcome(
        job_id=offered.job_id,
        attempt=offered.attempt,
        state=JobState.CANCELLED,
        begun_at=begun_at,
        reason=move.reason,
        moved=True,
        usage=Usage(input_tokens=read or 0, output_tokens=written or 0, requests=requests),
    )


@dataclass(frozen=True)
class HostAttempt:
    """An attempt that a host has begun, or that waits there, and whose end the workflow doesn't know yet."""

    job_id: str
    attempt: int
    repo: str
    begun_at: float | None
    """The time of the begin; None if the attempt waits on the host."""
    workflow_id: str
    """The workflow that waits for the attempt."""
    moves: bool
    """True if the job can move to another host: its repository has a remote, or its end is recorded."""
    require: frozenset[str] = frozenset()
    """The labels that the attempt's host must have, if the attempt waits there."""


def begun_on(engine: Engine, host: str) -> list[HostAttempt]:
    """Return the attempts of jobs and stages that the host has begun, and that a workflow waits for."""
    begun = schema.attempts.c
    columns = (
        *(begun.job_id, begun.attempt, begun.started_at.label("begun_at"), null().label("require")),
        or_(begun.ended_at.is_not(None), _HAS_REMOTE).label("moves"),
    )
    jobs = _of_jobs(schema.attempts, columns).where(_JOB.state.in_(OPEN_JOBS))
    stages = _of_stages(schema.attempts, columns).where(
        _STAGE.attempt == begun.attempt, _STAGE.state == StageState.RUNNING.value
    )
    return _attempts(engine, jobs.where(begun.host == host), stages.where(begun.host == host))


def queued_on(engine: Engine, host: str) -> list[HostAttempt]:
    """Return the attempts of jobs and stages that were placed on the host, but not begun there."""
    placed, begun, later = schema.placements.c, schema.attempts.c, schema.placements.alias("later").c
    columns = (
        *(placed.job_id, placed.attempt, null().label("begun_at"), placed.require),
        _HAS_REMOTE.label("moves"),
    )
    not_begun = ~exists().where(begun.job_id == placed.job_id, begun.attempt == placed.attempt)
    last = ~exists().where(later.job_id == placed.job_id, later.attempt > placed.attempt)
    here = (placed.host == host, not_begun)
    jobs = _of_jobs(schema.placements, columns).where(*here, _JOB.state == JobState.QUEUED.value)
    stages = _of_stages(schema.placements, columns).where(*here, last, _RUN.state.in_(sorted(OPEN_RUNS)))
    return _attempts(engine, jobs, stages)


def _of_jobs(table: FromClause, columns: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Select the last attempt of each job in a table, with the workflow that waits for it: a leg's own, else the
    tree's.
    """
    waits = case((_JOB.delegation_id.is_(None), _JOB.root_job_id), else_=_JOB.job_id).label("workflow_id")
    return (
        select(*columns, _JOB.repo, waits)
        .join(schema.jobs, (_JOB.job_id == table.c.job_id) & (_JOB.attempt == table.c.attempt))
        .outerjoin(schema.repos, schema.repos.c.name == _JOB.repo)
        .order_by(table.c.job_id)
    )


def _of_stages(table: FromClause, columns: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Select attempts in a table that are of pipelines' stages."""
    job_id = _STAGE.run_id + literal(".", String) + cast(_STAGE.number, String)
    return (
        select(*columns, _RUN.repo, _RUN.pipeline)
        .join(schema.pipeline_stages, table.c.job_id == job_id)
        .join(schema.pipeline_runs, _RUN.run_id == _STAGE.run_id)
        .outerjoin(schema.repos, schema.repos.c.name == _RUN.repo)
        .order_by(table.c.job_id)
    )


def _attempts(engine: Engine, jobs: Select[Any], stages: Select[Any]) -> list[HostAttempt]:
    waiting = [(row, row.workflow_id) for row in rows(engine, jobs)]
    waiting += [(row, workflow_id(row.pipeline)) for row in rows(engine, stages)]
    return [
        HostAttempt(
            row.job_id, row.attempt, row.repo, row.begun_at, waits, bool(row.moves), frozenset(row.require or ())
        )
        for row, waits in waiting
    ]


def to_keep(engine: Engine, host: str) -> list[tuple[str, int]]:
    """Return the attempts that moved away from this host and whose work it has not kept yet, by job and number."""
    table = schema.moves.c
    query = select(table.job_id, table.attempt).where(table.host == host, table.kept.is_(None))
    return [(job_id, attempt) for job_id, attempt in rows(engine, query)]


def keep(engine: Engine, key: tuple[str, int], ref: str) -> None:
    """Record where the work of a moved attempt is kept; empty if it had none."""
    mine = attempt_rows.is_of(schema.moves, Offered(*key))
    write(engine, update(schema.moves).where(mine).values(kept=ref))
