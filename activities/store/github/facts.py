"""What is to be written to GitHub, one row each, and how far that got (rulings L2, L3)."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Engine, func, select, update

from activities.store import schema
from activities.store.database import insert_new
from workflows.github.facts import FactState

table = schema.github_facts
PUSH, OPEN, DONE, FAILED, DROPPED = (each.value for each in FactState)


@dataclass(frozen=True)
class FactRow:
    """Something to be written once: a comment, a reaction, a check, a pull request."""

    fact_id: str
    kind: str
    root_job_id: str
    github: str
    number: int
    subject: str = ""
    """What it is about: a round, an event, the comment that gets the reaction, the branch to publish."""
    text: str = ""
    """What is said, where rows do not tell it."""
    state: str = OPEN
    host: str = ""
    """Where the checkout is that it needs; empty where it needs none."""
    at: float = 0.0
    next_at: float = 0.0
    """Not before."""
    attempts: int = 0
    error: str = ""
    done_at: float | None = None
    github_id: str | None = None
    """What it is there: a comment's id, a pull request's number."""
    url: str = ""
    digest: str = ""
    """Of what was written last; an edit that would change nothing is not made."""
    revision: int = 0
    """Of the task, as what was written tells of it."""

    @property
    def where(self) -> str:
        """The thread it is written on; the repository alone where there is none, as for a pull request to be opened."""
        return f"{self.github}#{self.number}" if self.number else self.github


def declare(engine: Engine, facts: Sequence[FactRow]) -> None:
    """Facts that are to be written; one that is known stays as it is."""
    rows = [asdict(replace(fact, at=fact.at or time.time())) for fact in facts]
    with engine.begin() as connection:
        insert_new(connection, table, rows)


def note(engine: Engine, fact_id: str, **values: Any) -> None:
    """What was found out about it; how far it is stays as it is unless that is said."""
    _change(engine, fact_id, values)


def again(engine: Engine, fact_id: str, **changes: Any) -> None:
    """One that was written is to be looked at again: what it tells may have changed."""
    values = {"state": OPEN, "next_at": 0.0, "attempts": 0, "error": "", **changes}
    with engine.begin() as connection:
        connection.execute(update(table).where(table.c.fact_id == fact_id).values(**values))


def get(engine: Engine, fact_id: str) -> FactRow | None:
    with engine.connect() as connection:
        row = connection.execute(select(table).where(table.c.fact_id == fact_id)).one_or_none()
    return FactRow(**row._mapping) if row else None


def next_due(engine: Engine, now: float, skip: Sequence[str] = ()) -> FactRow | None:
    """The one to be written now: in the order they were declared."""
    query = select(table).where(table.c.state == OPEN, table.c.next_at <= now, table.c.fact_id.not_in(skip))
    with engine.connect() as connection:
        row = connection.execute(query.order_by(table.c.at, table.c.fact_id).limit(1)).one_or_none()
    return FactRow(**row._mapping) if row else None


def waiting_until(engine: Engine) -> float | None:
    """When the first of those that wait is due; None when none waits."""
    with engine.connect() as connection:
        return connection.execute(select(func.min(table.c.next_at)).where(table.c.state.in_((OPEN, PUSH)))).scalar()


def to_push(engine: Engine, now: float) -> list[FactRow]:
    """Those whose branch is to be pushed now, in order."""
    query = select(table).where(table.c.state == PUSH, table.c.next_at <= now).order_by(table.c.at, table.c.fact_id)
    with engine.connect() as connection:
        return [FactRow(**row._mapping) for row in connection.execute(query)]


def of_root(engine: Engine, root: str) -> list[FactRow]:
    """All of a tree, in order."""
    query = select(table).where(table.c.root_job_id == root).order_by(table.c.at, table.c.fact_id)
    with engine.connect() as connection:
        return [FactRow(**row._mapping) for row in connection.execute(query)]


def unwritten(engine: Engine) -> list[FactRow]:
    """Those that failed, and those that were tried and wait."""
    query = select(table).where((table.c.state == FAILED) | (table.c.state.in_((OPEN, PUSH)) & (table.c.attempts > 0)))
    with engine.connect() as connection:
        return [FactRow(**row._mapping) for row in connection.execute(query.order_by(table.c.at))]


def written(engine: Engine, fact_id: str, *, github_id: str = "", url: str = "", digest: str = "") -> None:
    """It stands there."""
    values: dict[str, Any] = {"state": DONE, "done_at": time.time(), "digest": digest, "error": ""}
    values |= {"github_id": github_id} if github_id else {}
    values |= {"url": url} if url else {}
    _change(engine, fact_id, values)


def put_off(engine: Engine, fact_id: str, until: float, why: str) -> None:
    """It is tried again."""
    _change(engine, fact_id, {"attempts": table.c.attempts + 1, "next_at": until, "error": why})


def give_up(engine: Engine, fact_id: str, why: str) -> None:
    """It can never be written; a person has to look."""
    _change(engine, fact_id, {"attempts": table.c.attempts + 1, "state": FAILED, "error": why})


def waiting(engine: Engine) -> list[FactRow]:
    """Those that are to be written, what is due first; some need their branch pushed before."""
    query = select(table).where(table.c.state.in_((OPEN, PUSH))).order_by(table.c.next_at, table.c.at, table.c.fact_id)
    with engine.connect() as connection:
        return [FactRow(**row._mapping) for row in connection.execute(query)]


def failed(engine: Engine, github: str = "") -> list[FactRow]:
    """Those a person has to look at, of one repository or of all, in order."""
    query = select(table).where(table.c.state == FAILED, *([table.c.github == github] if github else ()))
    with engine.connect() as connection:
        return [FactRow(**row._mapping) for row in connection.execute(query.order_by(table.c.at, table.c.fact_id))]


def drop(engine: Engine, fact_id: str) -> None:
    """A person says that it need not be written."""
    mine = (table.c.fact_id == fact_id) & (table.c.state == FAILED)
    with engine.begin() as connection:
        connection.execute(update(table).where(mine).values(state=DROPPED))


def refusals(engine: Engine, github: str, number: int) -> list[FactRow]:
    """The refusals of a thread."""
    mine = (table.c.github == github, table.c.number == number, table.c.kind == "refusal")
    with engine.connect() as connection:
        return [FactRow(**row._mapping) for row in connection.execute(select(table).where(*mine))]


def _change(engine: Engine, fact_id: str, values: dict[str, Any]) -> None:
    with engine.begin() as connection:
        connection.execute(update(table).where(table.c.fact_id == fact_id).values(**values))
