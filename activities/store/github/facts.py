"""Facts: things to write to GitHub, one row each, and their progress (rulings L2, L3); and the trees whose work is
published automatically (ruling L9).
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Engine, Select, delete, exists, func, select, update

from activities.store import schema
from activities.store.queries import insert_new, one, rows, scalar, write
from activities.store.tree_list import WROTE
from workflows.github.facts import FactKind, FactState
from workflows.model.event_kinds import EventKind
from workflows.model.states import TaskState

table, published = schema.github_facts, schema.github_published
tasks, jobs, events = schema.tasks, schema.jobs, schema.events
PUSH, OPEN, DONE, FAILED, DROPPED = (state.value for state in FactState)


@dataclass(frozen=True)
class FactRow:
    """Something to write once: a comment, a reaction, a check, a pull request."""

    fact_id: str
    kind: str
    root_job_id: str
    github: str
    number: int
    subject: str = ""
    """What the fact is about: a round, an event, the comment that gets the reaction, or the branch to publish."""
    text: str = ""
    """The text to write; empty if it is built from other rows."""
    state: str = OPEN
    host: str = ""
    """Host of the checkout that writing needs; empty if it needs no checkout."""
    at: float = 0.0
    next_at: float = 0.0
    """Time of the next try."""
    attempts: int = 0
    error: str = ""
    done_at: float | None = None
    github_id: str | None = None
    """Its id on GitHub: a comment's id, a pull request's number."""
    url: str = ""
    digest: str = ""
    """Digest of the last text written. An update with the same digest is skipped."""
    revision: int = 0
    """Revision of the task that the last text shows."""

    @property
    def where(self) -> str:
        """Return the thread to write on, or just the repository if the thread does not exist yet, as before a pull
        request.
        """
        return f"{self.github}#{self.number}" if self.number else self.github


@dataclass(frozen=True)
class Finished:
    """A tree that ended well and made commits."""

    root_job_id: str
    task_id: str
    repo: str
    pull_request: int | None


def declare(engine: Engine, facts: Sequence[FactRow]) -> None:
    """Insert facts to write; known ones stay as they are."""
    insert_new(engine, table, *(asdict(replace(fact, at=fact.at or time.time())) for fact in facts))


def note(engine: Engine, fact_id: str, **values: Any) -> None:
    """Update these columns of a fact's row."""
    write(engine, update(table).where(table.c.fact_id == fact_id).values(**values))


def again(engine: Engine, fact_id: str, **changes: Any) -> None:
    """Reopen a written fact to update its text."""
    values = {"state": OPEN, "next_at": 0.0, "attempts": 0, "error": "", **changes}
    note(engine, fact_id, **values)


def get(engine: Engine, fact_id: str) -> FactRow | None:
    row = one(engine, select(table).where(table.c.fact_id == fact_id))
    return FactRow(**row._mapping) if row else None


def next_due(engine: Engine, now: float, skip: Sequence[str] = ()) -> FactRow | None:
    """Return the next fact to write now, in the order of declaration."""
    query = select(table).where(table.c.state == OPEN, table.c.next_at <= now, table.c.fact_id.not_in(skip))
    row = one(engine, query.order_by(table.c.at, table.c.fact_id).limit(1))
    return FactRow(**row._mapping) if row else None


def waiting_until(engine: Engine) -> float | None:
    """Return when the first waiting fact is due; None if no fact waits."""
    return scalar(engine, select(func.min(table.c.next_at)).where(table.c.state.in_((OPEN, PUSH))))


def to_push(engine: Engine, now: float) -> list[FactRow]:
    """Return the facts whose branch has to be pushed now, in order of declaration."""
    query = select(table).where(table.c.state == PUSH, table.c.next_at <= now).order_by(table.c.at, table.c.fact_id)
    return [FactRow(**row._mapping) for row in rows(engine, query)]


def of_root(engine: Engine, root: str) -> list[FactRow]:
    """Return all facts of a tree, in order."""
    query = select(table).where(table.c.root_job_id == root).order_by(table.c.at, table.c.fact_id)
    return [FactRow(**row._mapping) for row in rows(engine, query)]


def mark_written(engine: Engine, fact_id: str, *, github_id: str = "", url: str = "", digest: str = "") -> None:
    """Record that the fact is written."""
    values: dict[str, Any] = {"state": DONE, "done_at": time.time(), "digest": digest, "error": ""}
    values |= {"github_id": github_id} if github_id else {}
    values |= {"url": url} if url else {}
    note(engine, fact_id, **values)


def put_off(engine: Engine, fact_id: str, until: float, why: str) -> None:
    """Record a failed try and the time of the next."""
    note(engine, fact_id, attempts=table.c.attempts + 1, next_at=until, error=why)


def give_up(engine: Engine, fact_id: str, why: str) -> None:
    """Record that a fact can never be written, so that a person looks at it."""
    note(engine, fact_id, attempts=table.c.attempts + 1, state=FAILED, error=why)


def waiting(engine: Engine) -> list[FactRow]:
    """Return the facts to write, by due time; some need their branch pushed first."""
    query = select(table).where(table.c.state.in_((OPEN, PUSH))).order_by(table.c.next_at, table.c.at, table.c.fact_id)
    return [FactRow(**row._mapping) for row in rows(engine, query)]


def failures(engine: Engine, github: str = "") -> list[FactRow]:
    """Return the failed facts, which a person has to look at, of one repository or of all, in order."""
    query = select(table).where(table.c.state == FAILED, *([table.c.github == github] if github else ()))
    return [FactRow(**row._mapping) for row in rows(engine, query.order_by(table.c.at, table.c.fact_id))]


def drop(engine: Engine, fact_id: str) -> None:
    """Drop a failed fact, as a person decided."""
    mine = (table.c.fact_id == fact_id) & (table.c.state == FAILED)
    write(engine, update(table).where(mine).values(state=DROPPED))


def refusals(engine: Engine, github: str, number: int) -> list[FactRow]:
    """Return the facts of a thread that refuse a command."""
    mine = (table.c.github == github, table.c.number == number, table.c.kind == FactKind.REFUSAL)
    return [FactRow(**row._mapping) for row in rows(engine, select(table).where(*mine))]


def publish_in(engine: Engine, repos: Collection[str], now: float) -> None:
    """From now on, publish trees of these repositories when they end; stop publishing for all others."""
    with engine.begin() as connection:
        write(connection, delete(published).where(published.c.repo.not_in(repos)))
        insert_new(connection, published, *({"repo": repo, "since": now} for repo in sorted(repos)))


def examined_until(engine: Engine, before: float) -> None:
    """Mark all trees that ended before this time as examined for publishing; later queries skip them."""
    write(engine, update(published).where(published.c.since < before).values(since=before))


def to_publish(engine: Engine) -> list[Finished]:
    """Return trees that are done but not yet published, except those that a bound, a kill or a loop has ended."""
    wrote = exists().where(jobs.c.root_job_id == tasks.c.root_job_id, WROTE)
    cut_short = exists().where(
        events.c.root_job_id == tasks.c.root_job_id,
        events.c.kind == EventKind.DELEGATION_FINALIZE_ENQUEUED.value,
    )
    declared = exists().where(
        table.c.root_job_id == tasks.c.root_job_id, table.c.fact_id == tasks.c.root_job_id + "-publish"
    )
    root = jobs.alias()
    query = select(tasks.c.root_job_id, tasks.c.task_id, tasks.c.repo, root.c.pull_request)
    query = query.join(published, published.c.repo == tasks.c.repo).join(root, root.c.job_id == tasks.c.root_job_id)
    query = query.where(tasks.c.state == TaskState.DONE.value, tasks.c.ended_at >= published.c.since)
    query = query.where(wrote, ~cut_short, ~declared)
    return [Finished(**row._mapping) for row in rows(engine, query.order_by(tasks.c.ended_at))]


def outdated_pulls(engine: Engine) -> list[FactRow]:
    """Return pull requests whose tree has ended since their text was written."""
    query: Select[tuple[object, ...]] = select(table).join(tasks, tasks.c.root_job_id == table.c.root_job_id)
    query = query.where(table.c.kind == FactKind.PUBLISH, table.c.state == DONE, table.c.github_id.is_not(None))
    query = query.where(tasks.c.ended_at.is_not(None), tasks.c.revision != table.c.revision)
    return [FactRow(**row._mapping) for row in rows(engine, query.order_by(table.c.at))]


def published_of(engine: Engine, roots: Collection[str]) -> list[FactRow]:
    """Return the facts of the published work of these trees."""
    query = select(table).where(table.c.kind == FactKind.PUBLISH, table.c.root_job_id.in_(roots)).order_by(table.c.at)
    return [FactRow(**row._mapping) for row in rows(engine, query)]
