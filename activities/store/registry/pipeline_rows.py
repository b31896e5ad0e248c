"""The registered pipelines: their files as added, and whether they are enabled."""

import time
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, delete, select, update

from activities.store import schema
from activities.store.queries import rows, upsert, write
from workflows.pipeline.definition import Definition
from workflows.pipeline.syntax import Format
from workflows.text.digests import digest


@dataclass(frozen=True)
class Pipeline:
    """A registered pipeline. `enabled` says whether it may run; the file has only the initial value."""

    name: str
    repo: str | None
    enabled: bool
    scheduled: bool
    format: Format
    definition: str
    digest: str
    added_at: float
    updated_at: float


def put(engine: Engine, definition: Definition, text: str, format_: Format) -> Pipeline:
    """Register a definition by name, or replace the existing one; its runs are not touched."""
    old, now = get(engine, definition.name), time.time()
    row = {
        "name": definition.name,
        "repo": definition.repo,
        "enabled": definition.enabled,
        "scheduled": definition.schedule is not None,
        "format": format_.value,
        "definition": text,
        "digest": digest(text),
        "added_at": old.added_at if old else now,
        "updated_at": now,
    }
    upsert(engine, schema.pipelines, row)
    return Pipeline(**{**row, "format": format_})  # type: ignore[arg-type]


def get(engine: Engine, name: str) -> Pipeline | None:
    return next(iter(_read(engine, schema.pipelines.c.name == name)), None)


def every(engine: Engine) -> list[Pipeline]:
    return _read(engine)


def enable(engine: Engine, name: str, *, enabled: bool) -> None:
    change = update(schema.pipelines).where(schema.pipelines.c.name == name)
    write(engine, change.values(enabled=enabled, updated_at=time.time()))


def remove(engine: Engine, name: str) -> None:
    """Remove a pipeline; its runs stay."""
    write(engine, delete(schema.pipelines).where(schema.pipelines.c.name == name))


def _read(engine: Engine, *which: ColumnElement[bool]) -> list[Pipeline]:
    query = select(schema.pipelines).where(*which).order_by(schema.pipelines.c.name)
    return [Pipeline(**{**row._mapping, "format": Format(row.format)}) for row in rows(engine, query)]
