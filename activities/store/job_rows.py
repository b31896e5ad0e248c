"""The read model of trees: tasks, jobs, events. Only a higher revision replaces a stored row, so late and repeated
writes do no harm.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, and_, func, or_, select, tuple_, union

from activities.store import event_rows, outbox, round_rows, schema, writers
from activities.store.queries import Database, one, rows, scalar, transaction, upsert
from workflows.model.event_kinds import TELLS_PEOPLE
from workflows.model.rows import JobRecord, Records, TaskRecord, Written
from workflows.model.spend import Usage
from workflows.model.states import ENDED_JOBS, FAILING, OPEN_TASKS, JobState
from workflows.policy import lost_trees

NEWEST_FIRST = (schema.jobs.c.queued_at.desc(), schema.jobs.c.job_id.desc())


def write(store: Database, records: Records) -> None:
    """Write one step of a tree in one transaction."""
    with transaction(store) as connection:
        if records.task:
            upsert(connection, schema.tasks, records.task.model_dump(mode="json"), only_if_newer="revision")
        upsert(connection, schema.jobs, *map(_job_row, records.jobs), only_if_newer="revision")
        event_rows.tell(connection, records.events)
        round_rows.write(connection, records.rounds)
        outbox.add(connection, tuple(event for event in records.events if event.kind in TELLS_PEOPLE))


def write_as(engine: Engine, records: Records, root: str, run_id: str) -> Written:
    """Write one step by this run of the tree's workflow. Writes of a run that was replaced are dropped."""
    if not records.revision:  # not written by a step of the tree
        write(engine, records)
        return Written()
    with engine.begin() as connection:
        numbered = writers.renumber(connection, root, run_id, records)
        if numbered is None:
            return Written()
        stored, written = numbered
        write(connection, stored)
        if stored.whole and stored.task:  # rows that a reset left behind would stay open for ever
            still, revision = round_rows.open_rounds(connection, root=root), stored.task.revision
            known = tree(connection, root)
            write(connection, lost_trees.given_up(known, still, stored, revision=revision, now=time.time()))
    return written


def writer_of(engine: Engine, root: str) -> str:
    """Return the run of the tree's workflow that wrote its rows last; empty if it is unknown."""
    with engine.connect() as connection:
        return _run_of(writers.get(connection, root))


def _run_of(writer: writers.TreeWriter | None) -> str:
    return writer.run_id if writer else ""


def close_lost(engine: Engine, root: str, why: str, anew: str, writer: str) -> Records | None:
    """End every open row of a tree whose workflow is gone. Return None if no row is open; of several callers, only the
    first records the end.

    No-op if another run than `writer` has written meanwhile: a retry has opened the tree again.
    """
    with engine.begin() as connection:
        if _run_of(writers.get(connection, root)) != writer:
            return None
        task, jobs = task_of(connection, root), tree(connection, root)
        if task is None or not lost_trees.is_open(task, jobs):
            return None
        number = writers.last_event(connection, root) + 1
        waiting = round_rows.open_rounds(connection, root=root)
        ended = lost_trees.lost_rows(task, jobs, waiting, why=why, anew=anew, number=number, now=time.time())
        write(connection, ended)
        writers.forget(connection, root)
    return ended


def dismiss(engine: Engine, task: TaskRecord, actor: str) -> None:
    """Record that a person dismissed a blocked task."""
    with engine.begin() as connection:
        number = writers.last_event(connection, task.root_job_id) + 1
        write(connection, lost_trees.dismissed_rows(task, actor=actor, number=number, now=time.time()))


def open_trees(engine: Engine) -> dict[str, str]:
    """Map each tree that a workflow works on, by its rows, to the workflow's run that wrote them last. The run is empty
    if it is unknown.
    """
    tasks = select(schema.tasks.c.root_job_id).where(schema.tasks.c.state.in_(OPEN_TASKS))
    jobs = select(schema.jobs.c.root_job_id).where(schema.jobs.c.state.not_in(ENDED_JOBS))
    open_roots, writer = union(tasks, jobs).subquery(), schema.writers.c
    query = select(open_roots.c.root_job_id, writer.run_id)
    query = query.outerjoin(schema.writers, writer.root_job_id == open_roots.c.root_job_id)
    return {row.root_job_id: row.run_id or "" for row in rows(engine, query)}


def get(engine: Engine, job_id: str) -> JobRecord | None:
    row = one(engine, select(schema.jobs).where(schema.jobs.c.job_id == job_id))
    return _job(row) if row else None


def task_of(store: Database, root_job_id: str) -> TaskRecord | None:
    row = one(store, select(schema.tasks).where(schema.tasks.c.root_job_id == root_job_id))
    return TaskRecord.model_validate(dict(row._mapping)) if row else None


def tasks_of(engine: Engine, roots: Collection[str]) -> dict[str, TaskRecord]:
    """Return the tasks of several trees by root."""
    query = select(schema.tasks).where(schema.tasks.c.root_job_id.in_(roots))
    return {row.root_job_id: TaskRecord.model_validate(dict(row._mapping)) for row in rows(engine, query)}


def some(engine: Engine, ids: Collection[str]) -> list[JobRecord]:
    """Return the jobs with these ids."""
    return [_job(row) for row in rows(engine, select(schema.jobs).where(schema.jobs.c.job_id.in_(ids)))]


def blockers(engine: Engine, roots: Collection[str]) -> list[JobRecord]:
    """Return the jobs that explain why trees are blocked, in dispatch order: failed jobs, and jobs with a branch."""
    tells = schema.jobs.c.state.in_(list(FAILING)) | schema.jobs.c.branch.is_not(None)
    query = select(schema.jobs).where(schema.jobs.c.root_job_id.in_(roots), tells)
    query = query.order_by(func.length(schema.jobs.c.job_id), schema.jobs.c.job_id)
    return [_job(row) for row in rows(engine, query)]


def tree(store: Database, root_job_id: str) -> list[JobRecord]:
    """Return every job of a tree in dispatch order."""
    query = select(schema.jobs).where(schema.jobs.c.root_job_id == root_job_id)
    query = query.order_by(func.length(schema.jobs.c.job_id), schema.jobs.c.job_id)
    return [_job(row) for row in rows(store, query)]


@dataclass(frozen=True, kw_only=True)
class WorkFilter:
    """The filters that lists of jobs and of trees share."""

    repo: str | None = None
    agent: str | None = None
    """The agent of the job, or of a job of the tree."""
    text: str = ""
    """Words, each of them in a job's id, agent or leg, or in its task's title."""
    pull_request: int | None = None
    issue: int | None = None
    limit: int = 50
    before: tuple[float, str] | None = None
    """The time and id of the last item on the previous page."""

    def of_job(self, engine: Engine) -> list[ColumnElement[bool]]:
        """Return the conditions for a job; a tree matches if one of its jobs does."""
        names = ("agent", "pull_request", "issue")
        conditions = [schema.jobs.c[name] == value for name in names if (value := getattr(self, name))]
        words = [matches(engine, word) for word in self.text.split()]
        return [*conditions, and_(*words)] if words else conditions


@dataclass(frozen=True, kw_only=True)
class JobFilter(WorkFilter):
    """The filters of a list of jobs."""

    states: Collection[JobState] = ()
    tree: str | None = None
    """The root of the jobs' tree."""
    roots_only: bool = False
    preflight_failed: bool = False


def find(engine: Engine, wanted: JobFilter) -> list[JobRecord]:
    """Return the newest jobs that match."""
    jobs = schema.jobs.c
    query = select(schema.jobs).where(*wanted.of_job(engine)).order_by(*NEWEST_FIRST).limit(wanted.limit)
    if wanted.repo:
        query = query.where(jobs.repo == wanted.repo)
    if wanted.tree:
        query = query.where(jobs.root_job_id == wanted.tree)
    if wanted.states:
        query = query.where(jobs.state.in_(wanted.states))
    if wanted.roots_only:
        query = query.where(jobs.parent_job_id.is_(None))
    if wanted.preflight_failed:
        query = query.where(jobs.preflight_failed.is_not(None))
    if wanted.before:
        query = query.where(tuple_(jobs.queued_at, jobs.job_id) < wanted.before)
    if wanted.text:  # it reads every job: by the index `jobs_by_time` alone
        query = select(schema.jobs).where(jobs.job_id.in_(query.with_only_columns(jobs.job_id))).order_by(*NEWEST_FIRST)
    return [_job(row) for row in rows(engine, query)]


def matches(engine: Engine, word: str) -> ColumnElement[bool]:
    """Match a word in a job's id, agent or leg, or in its task's title, ignoring case.

    SQLite's LIKE itself ignores the case of ASCII letters, and takes twice as long with functions around the columns.
    """
    jobs, tasks = schema.jobs.c, schema.tasks.c
    escaped = word.translate({ord(letter): f"\\{letter}" for letter in "\\%_"})

    def has(column: ColumnElement[str]) -> ColumnElement[bool]:
        like = column.like if engine.dialect.name == "sqlite" else column.ilike
        return like(f"%{escaped}%", escape="\\")

    titled = select(tasks.root_job_id).where(has(tasks.title))
    named = (has(column) for column in (jobs.job_id, jobs.agent, jobs.delegation_id))
    return or_(*named, jobs.root_job_id.in_(titled))


def titles(engine: Engine, roots: set[str]) -> dict[str, str]:
    """Return the titles of these trees."""
    query = select(schema.tasks.c.root_job_id, schema.tasks.c.title).where(schema.tasks.c.root_job_id.in_(roots))
    return {row.root_job_id: row.title for row in rows(engine, query)} if roots else {}


def open_jobs(engine: Engine, *, repo: str | None = None, agent: str | None = None) -> list[JobRecord]:
    """Return the jobs that have not ended."""
    still_open = (JobState.QUEUED, JobState.RUNNING)
    return find(engine, JobFilter(repo=repo, agent=agent, states=still_open, limit=1000))


def last_ended(engine: Engine, since: float, most: int) -> dict[str, list[JobRecord]]:
    """Return the last ended jobs of each registered agent that were queued since then, the newest first."""
    jobs = schema.jobs.c
    at = func.row_number().over(partition_by=jobs.agent, order_by=(jobs.ended_at.desc(), jobs.job_id.desc()))
    ended = jobs.ended_at.is_not(None) & ~jobs.ephemeral & (jobs.queued_at >= since)
    numbered = select(jobs.job_id, at.label("at")).where(ended).subquery()
    query = select(schema.jobs).join(numbered, numbered.c.job_id == jobs.job_id).where(numbered.c.at <= most)
    by_agent: dict[str, list[JobRecord]] = {}
    for row in rows(engine, query.order_by(numbered.c.at)):
        by_agent.setdefault(row.agent, []).append(_job(row))
    return by_agent


def count_preflight_failures(engine: Engine) -> int:
    query = select(func.count()).where(schema.jobs.c.preflight_failed.is_not(None))
    return scalar(engine, query) or 0


def _job_row(job: JobRecord) -> dict[str, Any]:
    row = job.model_dump(mode="json", exclude={"usage"})
    return row | dict(job.usage)


def _job(row: Row[Any]) -> JobRecord:
    return job_of(dict(row._mapping))


def job_of(values: dict[str, Any]) -> JobRecord:
    """Return the record of a row's values."""
    values["usage"] = {name: values.pop(name) for name in Usage.model_fields}
    return JobRecord.model_validate(values)
