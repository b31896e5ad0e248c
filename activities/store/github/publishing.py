"""Trees whose work is published automatically, and pull requests with an outdated text (ruling L9)."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Engine, Select, delete, exists, select, update

from activities.store import schema
from activities.store.github.facts import DONE, FactRow
from activities.store.queries import insert_new, rows, write
from workflows.contract.models import Action
from workflows.model.event_kinds import EventKind
from workflows.model.states import JobState, TaskState

KIND = "publish"
table, facts = schema.github_published, schema.github_facts
tasks, jobs, events = schema.tasks, schema.jobs, schema.events


@dataclass(frozen=True)
class Finished:
    """A tree that ended well, with commits of its own."""

    root_job_id: str
    task_id: str
    repo: str
    pull_request: int | None


def serve(engine: Engine, repos: Collection[str], now: float) -> None:
    """Publish the trees that end in these repositories from now on; stop for all other repositories."""
    with engine.begin() as connection:
        write(connection, delete(table).where(table.c.repo.not_in(repos)))
        insert_new(connection, table, *({"repo": repo, "since": now} for repo in sorted(repos)))


def looked_at(engine: Engine, before: float) -> None:
    """Mark all trees that ended before this time as examined for publishing; later queries skip them."""
    write(engine, update(table).where(table.c.since < before).values(since=before))


def unpublished(engine: Engine) -> list[Finished]:
    """Return trees that are done but not yet published, except those that a bound, a kill or a loop has ended."""
    wrote = exists().where(
        jobs.c.root_job_id == tasks.c.root_job_id,
        jobs.c.action == Action.IMPLEMENT.value,
        jobs.c.state == JobState.SUCCEEDED.value,
        jobs.c.head_sha.is_not(None),
    )
    cut_short = exists().where(
        events.c.root_job_id == tasks.c.root_job_id,
        events.c.kind == EventKind.DELEGATION_FINALIZE_ENQUEUED.value,
    )
    told = exists().where(
        facts.c.root_job_id == tasks.c.root_job_id, facts.c.fact_id == tasks.c.root_job_id + "-publish"
    )
    root = jobs.alias()
    query = select(tasks.c.root_job_id, tasks.c.task_id, tasks.c.repo, root.c.pull_request)
    query = query.join(table, table.c.repo == tasks.c.repo).join(root, root.c.job_id == tasks.c.root_job_id)
    query = query.where(tasks.c.state == TaskState.DONE.value, tasks.c.ended_at >= table.c.since)
    query = query.where(wrote, ~cut_short, ~told)
    return [Finished(**row._mapping) for row in rows(engine, query.order_by(tasks.c.ended_at))]


def outdated(engine: Engine) -> list[FactRow]:
    """Return pull requests whose tree has ended since their text was written."""
    query: Select[tuple[object, ...]] = select(facts).join(tasks, tasks.c.root_job_id == facts.c.root_job_id)
    query = query.where(facts.c.kind == KIND, facts.c.state == DONE, facts.c.github_id.is_not(None))
    query = query.where(tasks.c.ended_at.is_not(None), tasks.c.revision != facts.c.revision)
    return [FactRow(**row._mapping) for row in rows(engine, query.order_by(facts.c.at))]


def of_trees(engine: Engine, roots: Collection[str]) -> list[FactRow]:
    """Return all facts of published work of these trees."""
    query = select(facts).where(facts.c.kind == KIND, facts.c.root_job_id.in_(roots)).order_by(facts.c.at)
    return [FactRow(**row._mapping) for row in rows(engine, query)]
