"""In-session reviews (spec: In-session review state): a hint for people. Nothing here touches jobs, tasks or gates."""

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Select, func, insert, select, tuple_, update

from activities.store import schema
from activities.store.queries import rows, scalar, write


@dataclass(frozen=True)
class Note:
    """A progress note; the caller names its author."""

    author: str
    text: str
    at: float


@dataclass(frozen=True)
class Review:
    """A review that somebody says they are doing."""

    review_id: str
    repo: str | None
    pull_request: int
    head_sha: str
    workflow: str
    opened_at: float
    closed_at: float | None
    verdict: str | None
    notes: tuple[Note, ...] = ()


def add(engine: Engine, review: Review) -> None:
    row = {name: getattr(review, name) for name in Review.__dataclass_fields__ if name != "notes"}
    write(engine, insert(schema.reviews).values(row))


def get(engine: Engine, review_id: str) -> Review | None:
    return next(iter(_read(engine, select(schema.reviews).where(schema.reviews.c.review_id == review_id))), None)


@dataclass(frozen=True)
class ReviewFilter:
    """The filters of a list of reviews."""

    repo: str | None = None
    pull_request: int | None = None
    limit: int = 50
    before: tuple[float, str] | None = None
    """The time and id of the last review on the page before."""


def find(engine: Engine, wanted: ReviewFilter) -> list[Review]:
    """Return the newest reviews that match, with their notes."""
    table = schema.reviews.c
    query = select(schema.reviews).order_by(table.opened_at.desc(), table.review_id.desc()).limit(wanted.limit)
    if wanted.repo is not None:
        query = query.where(table.repo == wanted.repo)
    if wanted.pull_request is not None:
        query = query.where(table.pull_request == wanted.pull_request)
    if wanted.before:
        query = query.where(tuple_(table.opened_at, table.review_id) < wanted.before)
    return _read(engine, query)


def _read(engine: Engine, query: Select[Any]) -> list[Review]:
    """Return reviews with their notes."""
    notes, by_review = schema.review_notes, dict[str, list[Note]]()
    reviews = rows(engine, query)
    written = select(notes).where(notes.c.review_id.in_([row.review_id for row in reviews])).order_by(notes.c.seq)
    for row in rows(engine, written):
        by_review.setdefault(row.review_id, []).append(Note(row.author, row.text, row.at))
    return [Review(**row._mapping, notes=tuple(by_review.get(row.review_id, ()))) for row in reviews]


def note(engine: Engine, review_id: str, author: str, text: str) -> None:
    """Append a note."""
    count = select(func.count()).where(schema.review_notes.c.review_id == review_id)
    with engine.begin() as connection:
        seq = (scalar(connection, count) or 0) + 1
        row = {"review_id": review_id, "seq": seq, "author": author, "text": text, "at": time.time()}
        write(connection, insert(schema.review_notes).values(row))


def close(engine: Engine, review_id: str, verdict: str) -> bool:
    """Close an open review; return False if it is closed already."""
    still_open = (schema.reviews.c.review_id == review_id) & schema.reviews.c.closed_at.is_(None)
    values = {"closed_at": time.time(), "verdict": verdict}
    return write(engine, update(schema.reviews).where(still_open).values(**values)) > 0
