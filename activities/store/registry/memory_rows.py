"""Memory (ruling K2): equal entries are stored once, found by their words, and recalled only when confirmed."""

import time
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Engine,
    Row,
    Select,
    Update,
    column,
    desc,
    func,
    literal_column,
    select,
    table,
    update,
)

from activities.store import queries, schema
from activities.store.queries import insert_new, one, rows
from workflows.policy.memory import Entry, MemoryState, Recalled, wanted_words, words
from workflows.text.digests import digest

_memory = schema.memory.c
_KEY_COUNTS = 2.5
"""Weight of a word in the key, relative to one in the content; equal to PostgreSQL's weights A and B."""
_BY_LENGTH = 1
"""Option of PostgreSQL: divide the rank by the logarithm of the length, so that long entries don't win."""


@dataclass(frozen=True)
class NewMemory:
    """An entry to remember. Entries with equal agent, repository, key and content are stored once."""

    agent: str | None
    repo: str | None
    key: str
    content: str
    author: str
    job_id: str | None = None

    @property
    def digest(self) -> str:
        return digest([self.agent, self.repo, self.key, self.content])


@dataclass(frozen=True)
class Sought:
    """A filter of entries; None matches all."""

    agent: str | None = None
    shared: bool = False
    repo: str | None = None
    state: MemoryState | None = None


def write(engine: Engine, new: NewMemory, *, confirmed_by: str | None = None) -> Entry:
    """Store an entry: pending, unless a person confirms it by writing it. An existing equal entry keeps its author."""
    with engine.begin() as connection:
        insert_new(connection, schema.memory, _row(new))
        if confirmed_by:
            decided = _decision(MemoryState.CONFIRMED, confirmed_by)
            queries.write(connection, decided.where(_memory.digest == new.digest))
        [row] = rows(connection, select(schema.memory).where(_memory.digest == new.digest))
    return _entry(row)


def decide(engine: Engine, number: int, state: MemoryState, actor: str) -> Entry | None:
    """Confirm or retire an entry. Idempotent. Return None if there is no such entry."""
    with engine.begin() as connection:
        queries.write(connection, _decision(state, actor).where(_memory.number == number))
        row = one(connection, select(schema.memory).where(_memory.number == number))
    return _entry(row) if row else None


def get(engine: Engine, number: int) -> Entry | None:
    row = one(engine, select(schema.memory).where(_memory.number == number))
    return _entry(row) if row else None


def find(engine: Engine, sought: Sought, limit: int) -> list[Entry]:
    """Return the newest entries that match."""
    query = select(schema.memory)
    if sought.agent is not None:
        query = query.where(_memory.agent == sought.agent)
    if sought.shared:
        query = query.where(_memory.agent.is_(None))
    if sought.repo is not None:
        query = query.where(_memory.repo == sought.repo)
    if sought.state is not None:
        query = query.where(_memory.state == sought.state)
    return [_entry(row) for row in rows(engine, query.order_by(_memory.number.desc()).limit(limit))]


def recall(
    engine: Engine, query: str, *, agent: str | None, shared: bool, repo: str | None, limit: int
) -> list[Recalled]:
    """Search confirmed entries for any word of the query: an agent's own and shared ones, a repository's and general
    ones.

    Best first; among equal scores own before shared, then newer.
    """
    wanted = wanted_words(query)
    if not wanted:
        return []
    # Only letters and digits are left, and each word is quoted: both databases parse this alike.
    match = " OR ".join(f'"{word}"' for word in wanted)
    matches = _on_sqlite(match) if engine.dialect.name == "sqlite" else _on_postgresql(match)
    if shared:
        matches = matches.where(_memory.agent.is_(None))
    if agent is not None:
        matches = matches.where(_memory.agent.is_(None) | (_memory.agent == agent))
    if repo is not None:
        matches = matches.where(_memory.repo.is_(None) | (_memory.repo == repo))
    order: tuple[ColumnElement[Any], ...] = (desc("score"), _memory.agent.is_(None), _memory.number.desc())
    # Read only the best entries whole: sorting needs numbers and scores only.
    best = matches.order_by(*order).limit(limit).subquery()
    whole = select(schema.memory, best.c.score).join(best, best.c.number == _memory.number).order_by(*order)
    return [Recalled(**_fields(row), score=row.score) for row in rows(engine, whole)]


def _on_sqlite(match: str) -> Select[Any]:
    """Search the full-text index first, then join the rows; the index holds confirmed entries only."""
    score = -func.bm25(literal_column("memory_search"), _KEY_COUNTS, 1.0, type_=Double)
    index = table("memory_search", column("rowid"))
    matches = select(_memory.number, score.label("score")).join(index, index.c.rowid == _memory.number)
    return matches.where(literal_column("memory_search").op("MATCH")(match))


def _on_postgresql(match: str) -> Select[Any]:
    index: ColumnElement[Any] = literal_column("memory_search")
    query = func.websearch_to_tsquery(literal_column("'memory_search'"), match)
    matches = select(_memory.number, func.ts_rank(index, query, _BY_LENGTH, type_=Double).label("score"))
    return matches.where(_memory.state == MemoryState.CONFIRMED, index.op("@@")(query))


def _row(new: NewMemory) -> dict[str, Any]:
    return asdict(new) | {
        "digest": new.digest,
        "key_words": " ".join(words(new.key)),
        "content_words": " ".join(words(new.content)),
        "state": MemoryState.PENDING,
        "created_at": time.time(),
    }


def _decision(state: MemoryState, actor: str) -> Update:
    changes = {"state": state, "decided_by": actor, "decided_at": time.time()}
    return update(schema.memory).where(_memory.state != state).values(changes)


def _entry(row: Row[Any]) -> Entry:
    return Entry(**_fields(row))


def _fields(row: Row[Any]) -> dict[str, Any]:
    kept = row._mapping
    own = {name: kept[name] for name in Entry.model_fields if name in kept}
    return own | {"id": f"mem-{row.number}", "state": MemoryState(row.state)}
