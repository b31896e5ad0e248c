"""In-session reviews (spec: In-session review state): a hint for people. Nothing here touches jobs, tasks or gates."""

import time
from dataclasses import dataclass

from sqlalchemy import Engine, func, insert, select, tuple_, update

from activities.store import schema
from activities.store.database import rows_with


@dataclass(frozen=True)
class Note:
    """A progress note; the author is whoever the caller names."""

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
    with engine.begin() as connection:
        connection.execute(insert(schema.reviews), row)


def get(engine: Engine, review_id: str) -> Review | None:
    notes = schema.review_notes.c
    written = select(notes.author, notes.text, notes.at).order_by(notes.seq)
    with engine.connect() as connection:
        row = connection.execute(rows_with(schema.reviews.c.review_id), {"review_id": review_id}).one_or_none()
        if row is None:
            return None
        rows = connection.execute(written.where(notes.review_id == review_id)).all()
        return Review(**row._mapping, notes=tuple(Note(*row) for row in rows))


def find(
    engine: Engine,
    *,
    repo: str | None = None,
    pull_request: int | None = None,
    before: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[Review]:
    """Return the newest reviews that match, with their notes; `before` is the time and id of the last one seen."""
    table, notes = schema.reviews.c, schema.review_notes.c
    query = select(schema.reviews).order_by(table.opened_at.desc(), table.review_id.desc())
    if repo is not None:
        query = query.where(table.repo == repo)
    if pull_request is not None:
        query = query.where(table.pull_request == pull_request)
    if before:
        query = query.where(tuple_(table.opened_at, table.review_id) < before)
    with engine.connect() as connection:
        rows = connection.execute(query.limit(limit)).all()
        written = select(schema.review_notes).where(notes.review_id.in_([row.review_id for row in rows]))
        by_review: dict[str, list[Note]] = {}
        for row in connection.execute(written.order_by(notes.seq)):
            by_review.setdefault(row.review_id, []).append(Note(row.author, row.text, row.at))
    return [Review(**row._mapping, notes=tuple(by_review.get(row.review_id, ()))) for row in rows]


def note(engine: Engine, review_id: str, author: str, text: str) -> None:
    """Append a note."""
    count = select(func.count()).where(schema.review_notes.c.review_id == review_id)
    with engine.begin() as connection:
        seq = connection.execute(count).scalar_one() + 1
        row = {"review_id": review_id, "seq": seq, "author": author, "text": text, "at": time.time()}
        connection.execute(insert(schema.review_notes), row)


def close(engine: Engine, review_id: str, verdict: str) -> bool:
    """Close an open review; return False if it is closed already."""
    still_open = (schema.reviews.c.review_id == review_id) & schema.reviews.c.closed_at.is_(None)
    values = {"closed_at": time.time(), "verdict": verdict}
    with engine.begin() as connection:
        return connection.execute(update(schema.reviews).where(still_open).values(**values)).rowcount > 0
