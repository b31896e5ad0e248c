"""Usage of jobs, summed by day; and token counters of sessions, whose difference is a turn's usage.

The database sums in one pass over the jobs of the requested days. (spec: token capture)
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Double, Engine, Row, cast, func, select

from activities.store import schema
from activities.store.queries import clock, one, rows, scalars, upsert
from workflows.model.event_kinds import EventKind
from workflows.model.spend import Usage
from workflows.model.states import JobState

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Spent:
    """Summed usage per day, agent, repository and model. `day` counts from 1 January 1970, in UTC."""

    day: int
    agent: str
    repo: str
    model: str
    """Empty if no model is known."""
    jobs: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    price_assumed: bool
    """True if some of the cost is a guess (ruling K5)."""
    requests: int | None
    """None if no program said how many (ruling S6)."""


@dataclass(frozen=True)
class Repairs:
    """The number of results that agents were asked to correct (ruling A5), per day, agent, repository and model."""

    day: int
    agent: str
    repo: str
    model: str
    count: int


def since(engine: Engine, day: int) -> list[Spent]:
    """Sum the usage from the beginning of a day on. A job counts for the day it ended; an open one for the day it
    began.
    """
    jobs = schema.jobs.c
    at = func.coalesce(jobs.ended_at, jobs.started_at, jobs.queued_at, type_=Double)
    # SQLite's sum of integers can overflow.
    total, any_of = ("total", "max") if engine.dialect.name == "sqlite" else ("sum", "bool_or")
    keys = (jobs.agent, jobs.repo, jobs.model, _day_of(engine, at))  # in the order of the covering index
    used = [getattr(func, total)(column) for column in (jobs.input_tokens, jobs.output_tokens, jobs.cost_usd)]
    sums = (func.count(), *used, getattr(func, any_of)(jobs.price_assumed), func.sum(jobs.requests))
    query = select(*keys, *sums).where(at >= day * DAY_SECONDS).group_by(*keys)
    return [
        Spent(int(day), agent, repo, model or "", count, int(read), int(written), float(usd), bool(guess), requests)
        for agent, repo, model, day, count, read, written, usd, guess, requests in rows(engine, query)
    ]


def recent_models(engine: Engine, runtime: str, most: int = 5) -> list[str]:
    """Return the models with which jobs of a runtime succeeded in the last 30 days, the latest first."""
    jobs = schema.jobs.c
    taken = (jobs.runtime == runtime) & (jobs.state == JobState.SUCCEEDED) & jobs.model.is_not(None)
    recent = jobs.queued_at >= clock() - 30.0 * DAY_SECONDS
    query = select(jobs.model).where(taken, recent).group_by(jobs.model).order_by(func.max(jobs.ended_at).desc())
    return [model for model in scalars(engine, query.limit(most)) if model]


def repairs(engine: Engine, day: int) -> list[Repairs]:
    """Count the results that agents were asked to correct from the beginning of a day on."""
    jobs, events = schema.jobs.c, schema.events.c
    keys = (_day_of(engine, events.at), jobs.agent, jobs.repo, jobs.model)
    query = select(*keys, func.count()).select_from(schema.events.join(schema.jobs, jobs.job_id == events.job_id))
    query = query.where(events.kind == EventKind.RESULT_REPAIRED, events.at >= day * DAY_SECONDS).group_by(*keys)
    return [
        Repairs(int(day), agent, repo, model or "", count) for day, agent, repo, model, count in rows(engine, query)
    ]


def _day_of(engine: Engine, at: ColumnElement[float]) -> ColumnElement[Any]:
    days = at / float(DAY_SECONDS)
    # SQLite's cast truncates, PostgreSQL's would round.
    return cast(days, BigInteger) if engine.dialect.name == "sqlite" else func.floor(days)


def of_turn(engine: Engine, runtime: str, session: str, turn: str, total: Usage, *, fresh: bool) -> Usage:
    """Return a turn's usage from the session's total after it; its requests are the turn's own already. Idempotent for
    each turn.

    A fresh session begins at zero. Return zero for the first known turn of any other session, and if the total has
    become lower. Later turns count from that total.
    """
    table = schema.agent_sessions
    with engine.begin() as connection:
        key = (table.c.runtime == runtime) & (table.c.session == session)
        row = one(connection, select(table).where(key))
        before = Usage() if fresh else _before(row, turn, total)
        values = {
            "runtime": runtime,
            "session": session,
            "turn": turn,
            "input_before": before.input_tokens,
            "output_before": before.output_tokens,
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
        }
        upsert(connection, table, values)
    return Usage(
        input_tokens=max(0, total.input_tokens - before.input_tokens),
        output_tokens=max(0, total.output_tokens - before.output_tokens),
        requests=total.requests,
    )


def _before(row: Row[Any] | None, turn: str, total: Usage) -> Usage:
    if row is None:
        return total
    if row.turn == turn:
        return Usage(input_tokens=row.input_before, output_tokens=row.output_before)
    return Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens)
