"""Comments with a command: each acts once, for ever, however it arrived (ruling L5)."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Engine, select, update

from activities.store import schema
from activities.store.queries import insert_new, one, rows, scalar, write

table = schema.github_comments
TAKEN, DONE, REFUSED, IGNORED = "taken", "done", "refused", "ignored"


@dataclass(frozen=True)
class CommentRow:
    """A comment with a command, and its outcome."""

    comment_id: int
    github: str
    number: int
    author: str
    created_at: float
    state: str = TAKEN
    outcome: str = ""
    job_id: str | None = None
    at: float = 0.0
    acted_at: float | None = None


def take(engine: Engine, comments: Sequence[CommentRow]) -> int:
    """Insert comments to act on; known ones are left alone. Return how many were new."""
    return insert_new(engine, table, *(asdict(row) | {"at": row.at or time.time()} for row in comments))


def open_ones(engine: Engine) -> list[CommentRow]:
    """Return the comments that wait for their action, in the order they were written."""
    query = select(table).where(table.c.state == TAKEN).order_by(table.c.created_at, table.c.comment_id)
    return [CommentRow(**row._mapping) for row in rows(engine, query)]


def latest(engine: Engine, most: int) -> list[CommentRow]:
    """Return the latest commands, newest first."""
    query = select(table).order_by(table.c.created_at.desc(), table.c.comment_id.desc()).limit(most)
    return [CommentRow(**row._mapping) for row in rows(engine, query)]


def get(engine: Engine, comment_id: int) -> CommentRow | None:
    row = one(engine, select(table).where(table.c.comment_id == comment_id))
    return CommentRow(**row._mapping) if row else None


def reserve(engine: Engine, comment_id: int, job_id: str) -> str:
    """Return the id of the tree that a comment starts: this one, unless another was reserved before."""
    mine = table.c.comment_id == comment_id
    with engine.begin() as connection:
        write(connection, update(table).where(mine, table.c.job_id.is_(None)).values(job_id=job_id))
        return scalar(connection, select(table.c.job_id).where(mine)) or job_id


def acted(engine: Engine, comment_id: int, state: str, outcome: str, job_id: str | None = None) -> None:
    """Record the outcome of a comment, which is final."""
    mine = (table.c.comment_id == comment_id) & (table.c.state == TAKEN)
    values = {"state": state, "outcome": outcome, "acted_at": time.time()} | ({"job_id": job_id} if job_id else {})
    write(engine, update(table).where(mine).values(**values))
