"""The starts of trees, and the states of those that closed blocked: an operator may re-open them (ruling D4)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Engine, select, update

from activities.store import job_rows, schema, writers
from activities.store.queries import insert_new, one, rows, scalars, write
from workflows.model.rows import Records
from workflows.model.settings import MERGE_LINE
from workflows.model.states import ENDED_TASKS, TaskState, WaitsFor
from workflows.model.workers import UNRESOLVED

if TYPE_CHECKING:
    from workflows.tree.state import TreeInput, TreeMemory


@dataclass(frozen=True)
class Tree:
    """A tree's start, and its last state if the tree can be re-opened."""

    start: "TreeInput"
    host: str
    state: "TreeMemory | None"


def begin(engine: Engine, start: "TreeInput", host: str, records: Records | None = None) -> None:
    """Record a tree's start and its first rows in one transaction; the first record is final."""
    row = {"root_job_id": start.root_job_id, "host": host, "start": start.model_dump(mode="json"), "revision": 0}
    with engine.begin() as connection:
        insert_new(connection, schema.trees, row)
        if records:
            job_rows.write(connection, records)


def base_of(engine: Engine, root_job_id: str) -> tuple[str, str]:
    """Return a tree's base, which is empty before it is resolved, and the name of its task branch.

    The branch's name is empty if the branch is named after the task (ruling O6).
    """
    asked = schema.trees.c.start["assignment"]
    query = select(asked["base"].as_string(), asked["task_branch"].as_string())
    row = one(engine, query.where(schema.trees.c.root_job_id == root_job_id))
    base, branch = row or ("", "")
    return "" if base in (None, UNRESOLVED) else str(base), branch or ""


def open_bases(engine: Engine, repo: str) -> frozenset[str]:
    """Return the bases of a repository's trees that may still run jobs."""
    trees, tasks = schema.trees.c, schema.tasks.c
    query = select(trees.start[("assignment", "base")].as_string())
    query = query.join_from(schema.trees, schema.tasks, tasks.root_job_id == trees.root_job_id)
    bases = scalars(engine, query.where(tasks.repo == repo, tasks.state.not_in(ENDED_TASKS)))
    return frozenset(filter(None, bases))


def to_merge(engine: Engine, since: float) -> list[tuple[str, str, float]]:
    """List trees that ended done since then and were started with `merge = "line"`, the last first: root, repository,
    end (O6).

    Those that a bound cut short are left to a person (G1.cut).
    """
    trees, tasks = schema.trees, schema.tasks
    query = select(tasks.c.root_job_id, tasks.c.repo, tasks.c.ended_at)
    query = query.join(trees, trees.c.root_job_id == tasks.c.root_job_id)
    query = query.where(tasks.c.state == TaskState.DONE.value, tasks.c.ended_at > since)
    query = query.where(tasks.c.waits_for != WaitsFor.START.value)
    query = query.where(trees.c.start[("settings", "merge")].as_string() == MERGE_LINE)
    query = query.order_by(tasks.c.ended_at.desc())
    return [(root, repo, ended_at) for root, repo, ended_at in rows(engine, query)]


def resolve_base(engine: Engine, root_job_id: str, base: str) -> str:
    """Record the base that a job has resolved. Return it, or the base that another job of the tree recorded first."""
    from workflows.tree.state import TreeInput

    this = schema.trees.c.root_job_id == root_job_id
    with engine.begin() as connection:
        row = one(connection, select(schema.trees.c.start).where(this).with_for_update())
        if row is None:
            return base
        start = TreeInput.model_validate(row.start)
        if start.assignment.base != UNRESOLVED:
            return start.assignment.base
        resolved = start.assignment.model_copy(update={"base": base})
        changed = start.model_copy(update={"assignment": resolved}).model_dump(mode="json")
        write(connection, update(schema.trees).where(this).values(start=changed))
        return base


def keep(engine: Engine, state: "TreeMemory", host: str, run_id: str = "") -> None:
    """Save the state with which a tree closed, unless a later one is saved."""
    begin(engine, state.input, host)
    with engine.begin() as connection:
        writer = writers.get(connection, state.root_id)
        revision = state.revision + (writer.shift if writer and writer.run_id == run_id else 0)
        older = (schema.trees.c.root_job_id == state.root_id) & (schema.trees.c.revision < revision)
        values = {"revision": revision, "state": state.model_dump(mode="json")}
        write(connection, update(schema.trees).where(older).values(**values))


def keep_interrupted(engine: Engine, state: "TreeMemory | None", root: str) -> None:
    """Save the state from which an interrupted tree can continue; None deletes the saved state."""
    values = {"revision": 0, "state": state.model_dump(mode="json") if state else None}
    write(engine, update(schema.trees).where(schema.trees.c.root_job_id == root).values(**values))


def get(engine: Engine, root_job_id: str) -> Tree | None:
    row = one(engine, select(schema.trees).where(schema.trees.c.root_job_id == root_job_id))
    if row is None:
        return None
    from workflows.tree.state import TreeInput, TreeMemory

    state = TreeMemory.model_validate(row.state) if row.state else None
    return Tree(TreeInput.model_validate(row.start), row.host, state)
