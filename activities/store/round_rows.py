"""Rounds that wait for people, written by their tree (ruling F1)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Engine, Row, select

from activities.store import schema
from activities.store.queries import Database, one, rows, upsert
from workflows.model.rows import RoundRecord


def write(store: Database, records: tuple[RoundRecord, ...]) -> None:
    """Write rounds. Only a higher revision replaces a stored row, so late and repeated writes do no harm."""
    upsert(store, schema.rounds, *(record.model_dump(mode="json") for record in records), only_if_newer="revision")


def open_rounds(store: Database, *, root: str | None = None) -> list[RoundRecord]:
    """Return the open rounds, oldest first."""
    query = select(schema.rounds).where(schema.rounds.c.closed_at.is_(None))
    if root:
        query = query.where(schema.rounds.c.root_job_id == root)
    return [_round(row) for row in rows(store, query.order_by(schema.rounds.c.opened_at))]


def some(engine: Engine, round_ids: Collection[str]) -> list[RoundRecord]:
    """Return the rounds with these ids."""
    query = select(schema.rounds).where(schema.rounds.c.round_id.in_(round_ids))
    return [_round(row) for row in rows(engine, query)]


def of_tree(engine: Engine, root: str) -> list[RoundRecord]:
    """Return every round of a tree, oldest first."""
    return of_trees(engine, [root])


def of_trees(engine: Engine, roots: Collection[str]) -> list[RoundRecord]:
    """Return every round of these trees, oldest first."""
    query = select(schema.rounds).where(schema.rounds.c.root_job_id.in_(roots)).order_by(schema.rounds.c.opened_at)
    return [_round(row) for row in rows(engine, query)]


def get(engine: Engine, round_id: str) -> RoundRecord | None:
    row = one(engine, select(schema.rounds).where(schema.rounds.c.round_id == round_id))
    return _round(row) if row else None


def _round(row: Row[Any]) -> RoundRecord:
    return RoundRecord.model_validate(dict(row._mapping))
