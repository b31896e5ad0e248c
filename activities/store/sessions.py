"""Token counters of sessions as last seen: the difference is the usage of a turn (spec: token capture)."""

from typing import Any

from sqlalchemy import Engine, Row, select

from activities.store import schema
from activities.store.database import upsert
from workflows.model.spend import Usage


def spent(engine: Engine, runtime: str, session: str, turn: str, total: Usage, *, fresh: bool) -> Usage:
    """Return a turn's usage from the session's total after it. Idempotent for each turn.

    A fresh session begins at zero. A session first seen in the middle has an unknown past, and its turn counts zero; so
    does a turn after which the counter went backwards. Later turns count from there.
    """
    table = schema.agent_sessions
    with engine.begin() as connection:
        key = (table.c.runtime == runtime) & (table.c.session == session)
        row = connection.execute(select(table).where(key)).one_or_none()
        before = Usage() if fresh else _before(row, turn, total)
        values = {
            "runtime": runtime,
            "session": session,
            "turn": turn,
            "input_before": before.input_tokens,
            "output_before": before.output_tokens,
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
        }
        upsert(connection, table, [values])
    return Usage(
        input_tokens=max(0, total.input_tokens - before.input_tokens),
        output_tokens=max(0, total.output_tokens - before.output_tokens),
    )


def _before(row: Row[Any] | None, turn: str, total: Usage) -> Usage:
    if row is None:
        return total
    if row.turn == turn:
        return Usage(input_tokens=row.input_before, output_tokens=row.output_before)
    return Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens)
