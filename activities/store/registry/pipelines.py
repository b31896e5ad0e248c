"""The registered pipelines: their files as added, and whether they are enabled."""

import time
from dataclasses import dataclass

from sqlalchemy import Engine, delete, select, update

from activities.store import schema
from activities.store.database import rows_with, upsert
from workflows.pipeline.definition import Definition
from workflows.pipeline.syntax import Format
from workflows.text.digests import digest


@dataclass(frozen=True)
class Pipeline:
    """A registered pipeline. `enabled` decides; the file only has its first value."""

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
    with engine.begin() as connection:
        upsert(connection, schema.pipelines, [row])
    return Pipeline(**{**row, "format": format_})  # type: ignore[arg-type]


def get(engine: Engine, name: str) -> Pipeline | None:
    return next(iter(_read(engine, name)), None)


def every(engine: Engine) -> list[Pipeline]:
    return _read(engine)


def enable(engine: Engine, name: str, *, enabled: bool) -> None:
    change = update(schema.pipelines).where(schema.pipelines.c.name == name)
    with engine.begin() as connection:
        connection.execute(change.values(enabled=enabled, updated_at=time.time()))


def remove(engine: Engine, name: str) -> None:
    """Remove a pipeline; its runs stay."""
    with engine.begin() as connection:
        connection.execute(delete(schema.pipelines).where(schema.pipelines.c.name == name))


def _read(engine: Engine, name: str | None = None) -> list[Pipeline]:
    with engine.connect() as connection:
        if name is None:
            found = connection.execute(select(schema.pipelines).order_by(schema.pipelines.c.name))
        else:
            found = connection.execute(rows_with(schema.pipelines.c.name), {"name": name})
        return [Pipeline(**{**row._mapping, "format": Format(row.format)}) for row in found]
