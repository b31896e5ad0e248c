"""Numbers of waiting and running jobs and of stopped tasks, counted from indexes, however many rows there are."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, func, select

from activities.store.schema import jobs, tasks
from activities.store.waiting import OPERATOR
from workflows.model.states import JobState, TaskState


@dataclass(frozen=True)
class Counts:
    """The counts of the whole store."""

    queued: int
    running: int
    paused: int
    """Trees that wait for a person's answer."""
    blocked: int
    """Tasks that a person must retry or dismiss."""


def now(engine: Engine) -> Counts:
    """Count the current states."""
    wanted: tuple[ColumnElement[bool], ...] = (
        jobs.c.state == JobState.QUEUED.value,
        jobs.c.state == JobState.RUNNING.value,
        tasks.c.state == TaskState.AWAITING_HUMAN.value,
        tasks.c.waits_for.in_(OPERATOR),
    )
    counted = [select(func.count()).where(each).scalar_subquery() for each in wanted]
    with engine.connect() as connection:
        return Counts(*connection.execute(select(*counted)).one())
