"""Usage of jobs, summed by the database in one pass over the jobs of the requested days."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Double, Engine, cast, func, select

from activities.store import schema

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Spent:
    """The usage of the jobs with these values. `day` counts from 1 January 1970, in UTC."""

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


def since(engine: Engine, day: int) -> list[Spent]:
    """Sum the usage from the beginning of a day on. A job counts for the day it ended; an open one for the day it
    began.
    """
    jobs = schema.jobs.c
    at = func.coalesce(jobs.ended_at, jobs.started_at, jobs.queued_at, type_=Double)
    days, sqlite = at / float(DAY_SECONDS), engine.dialect.name == "sqlite"
    # SQLite's cast truncates, PostgreSQL's would round; and SQLite's sum of integers can overflow.
    day_of: ColumnElement[Any] = cast(days, BigInteger) if sqlite else func.floor(days)
    total, any_of = ("total", "max") if sqlite else ("sum", "bool_or")
    keys = (jobs.agent, jobs.repo, jobs.model, day_of)  # in the order of the covering index
    used = [getattr(func, total)(each) for each in (jobs.input_tokens, jobs.output_tokens, jobs.cost_usd)]
    sums = (func.count(), *used, getattr(func, any_of)(jobs.price_assumed))
    query = select(*keys, *sums).where(at >= day * DAY_SECONDS).group_by(*keys)
    with engine.connect() as connection:
        return [
            Spent(int(day), agent, repo, model or "", count, int(read), int(written), float(usd), bool(guess))
            for agent, repo, model, day, count, read, written, usd, guess in connection.execute(query)
        ]
