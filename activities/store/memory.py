"""Memory (ruling K2): the same entry is kept once, found by its words, and recalled only when confirmed."""

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

from activities.store import schema
from activities.store.database import insert_new
from workflows.model.digests import digest
from workflows.policy.memory import Entry, MemoryState, Recalled, wanted_words, words

_memory = schema.memory.c
_KEY_COUNTS = 2.5
"""How much more a word of the key says than one of the content; as in PostgreSQL's weights A and B."""
_BY_LENGTH = 1
"""PostgreSQL: long entries do not win by their length."""


@dataclass(frozen=True)
class Written:
    """What somebody wants remembered. Two that agree in owner, scope, key and content are one entry."""

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
    """Which entries are meant; what is None does not matter."""

    agent: str | None = None
    shared: bool = False
    repo: str | None = None
    state: MemoryState | None = None


def write(engine: Engine, written: Written, *, confirmed_by: str | None = None) -> Entry:
    """Keep an entry: pending, unless a person confirms it by writing it. One that is there keeps what it has."""
    with engine.begin() as connection:
        insert_new(connection, schema.memory, [_row(written)])
        if confirmed_by:
            connection.execute(_decision(MemoryState.CONFIRMED, confirmed_by).where(_memory.digest == written.digest))
        return _entry(connection.execute(select(schema.memory).where(_memory.digest == written.digest)).one())


def decide(engine: Engine, number: int, state: MemoryState, actor: str) -> Entry | None:
    """Confirm or retire; saying it again changes nothing. None when there is no such entry."""
    with engine.begin() as connection:
        connection.execute(_decision(state, actor).where(_memory.number == number))
        row = connection.execute(select(schema.memory).where(_memory.number == number)).one_or_none()
    return _entry(row) if row else None


def get(engine: Engine, number: int) -> Entry | None:
    with engine.connect() as connection:
        row = connection.execute(select(schema.memory).where(_memory.number == number)).one_or_none()
    return _entry(row) if row else None


def find(engine: Engine, sought: Sought, limit: int) -> list[Entry]:
    """The newest entries that are meant."""
    query = select(schema.memory)
    if sought.agent is not None:
        query = query.where(_memory.agent == sought.agent)
    if sought.shared:
        query = query.where(_memory.agent.is_(None))
    if sought.repo is not None:
        query = query.where(_memory.repo == sought.repo)
    if sought.state is not None:
        query = query.where(_memory.state == sought.state)
    with engine.connect() as connection:
        return [_entry(row) for row in connection.execute(query.order_by(_memory.number.desc()).limit(limit))]


def recall(
    engine: Engine, query: str, *, agent: str | None, shared: bool, repo: str | None, limit: int
) -> list[Recalled]:
    """Confirmed entries with any of the query's words: an agent's own and the shared, a repository's and the general.

    Best first; own before shared where they match alike, then the newer.
    """
    wanted = wanted_words(query)
    if not wanted:
        return []
    # Only letters and digits are left, and each word is quoted: both databases read this the same way.
    match = " OR ".join(f'"{word}"' for word in wanted)
    found = _on_sqlite(match) if engine.dialect.name == "sqlite" else _on_postgresql(match)
    if shared:
        found = found.where(_memory.agent.is_(None))
    if agent is not None:
        found = found.where(_memory.agent.is_(None) | (_memory.agent == agent))
    if repo is not None:
        found = found.where(_memory.repo.is_(None) | (_memory.repo == repo))
    order: tuple[ColumnElement[Any], ...] = (desc("score"), _memory.agent.is_(None), _memory.number.desc())
    # Only the best are read whole: what is sorted is numbers and scores.
    best = found.order_by(*order).limit(limit).subquery()
    whole = select(schema.memory, best.c.score).join(best, best.c.number == _memory.number).order_by(*order)
    with engine.connect() as connection:
        return [Recalled(**_shown(row), score=row.score) for row in connection.execute(whole)]


def _on_sqlite(match: str) -> Select[Any]:
    """Found in the index first, then looked up; the index holds what is confirmed and nothing else."""
    score = -func.bm25(literal_column("memory_search"), _KEY_COUNTS, 1.0, type_=Double)
    index = table("memory_search", column("rowid"))
    found = select(_memory.number, score.label("score")).join(index, index.c.rowid == _memory.number)
    return found.where(literal_column("memory_search").op("MATCH")(match))


def _on_postgresql(match: str) -> Select[Any]:
    index: ColumnElement[Any] = literal_column("memory_search")
    query = func.websearch_to_tsquery(literal_column("'memory_search'"), match)
    found = select(_memory.number, func.ts_rank(index, query, _BY_LENGTH, type_=Double).label("score"))
    return found.where(_memory.state == MemoryState.CONFIRMED, index.op("@@")(query))


def _row(written: Written) -> dict[str, Any]:
    return asdict(written) | {
        "digest": written.digest,
        "key_words": " ".join(words(written.key)),
        "content_words": " ".join(words(written.content)),
        "state": MemoryState.PENDING,
        "created_at": time.time(),
    }


def _decision(state: MemoryState, actor: str) -> Update:
    changes = {"state": state, "decided_by": actor, "decided_at": time.time()}
    return update(schema.memory).where(_memory.state != state).values(changes)


def _entry(row: Row[Any]) -> Entry:
    return Entry(**_shown(row))


def _shown(row: Row[Any]) -> dict[str, Any]:
    """A row as an entry's fields."""
    kept = row._mapping
    own = {name: kept[name] for name in Entry.model_fields if name in kept}
    return own | {"id": f"mem-{row.number}", "state": MemoryState(row.state)}
