"""Read and write rows: given an engine, in a new transaction; given a connection, in the caller's."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from sqlalchemy import Connection, Double, Engine, Row, Table, UpdateBase, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import TypedReturnsRows

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Database = Engine | Connection


@contextmanager
def transaction(store: Database) -> Iterator[Connection]:
    """Begin a transaction, or take part in the caller's."""
    if isinstance(store, Connection):
        yield store
    else:
        with store.begin() as connection:
            yield connection


@contextmanager
def reading(store: Database) -> Iterator[Connection]:
    """Connect to read, or use the caller's connection: there is nothing to commit."""
    if isinstance(store, Connection):
        yield store
    else:
        with store.connect() as connection:
            yield connection


def rows(store: Database, query: TypedReturnsRows[*Ts]) -> Sequence[Row[*Ts]]:
    """Return all rows of a query."""
    with reading(store) as connection:
        return connection.execute(query).all()


def one(store: Database, query: TypedReturnsRows[*Ts]) -> Row[*Ts] | None:
    """Return the only row of a query; None without one."""
    with reading(store) as connection:
        return connection.execute(query).one_or_none()


def scalars(store: Database, query: TypedReturnsRows[T]) -> Sequence[T]:
    """Return the value in each row of a query."""
    with reading(store) as connection:
        return connection.scalars(query).all()


def scalar(store: Database, query: TypedReturnsRows[T]) -> T | None:
    """Return the value in the first row of a query; None without one."""
    with reading(store) as connection:
        return connection.scalar(query)


def write(store: Database, statement: UpdateBase, values: Sequence[Mapping[str, Any]] | None = None) -> int:
    """Insert, update or delete; return the number of rows."""
    with transaction(store) as connection:
        return connection.execute(statement, values, execution_options={"preserve_rowcount": True}).rowcount


def insert_new(store: Database, table: Table, *new: Mapping[str, Any]) -> int:
    """Insert rows that do not exist yet; return their number. Idempotent, for at-least-once writers."""
    return write(store, insert(store.dialect.name, table).on_conflict_do_nothing(), new) if new else 0


def upsert(store: Database, table: Table, *new: Mapping[str, Any], only_if_newer: str | None = None) -> None:
    """Insert rows, or update the existing rows with the same primary key. With `only_if_newer`, update only rows in
    which that column's value is lower than the new one.
    """
    if new:
        write(store, _upserting(store.dialect.name, table, tuple(new[0]), only_if_newer), new)


@cache
def _upserting(
    dialect: str, table: Table, columns: tuple[str, ...], only_if_newer: str | None
) -> "postgresql.Insert | sqlite.Insert":
    """Build the statement. Cached: building it takes longer than executing it."""
    statement = insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    changes = {name: statement.excluded[name] for name in columns if name not in keys}
    newer = statement.excluded[only_if_newer] > table.c[only_if_newer] if only_if_newer else None
    return statement.on_conflict_do_update(index_elements=keys, set_=changes, where=newer)


def insert(dialect: str, table: Table) -> "postgresql.Insert | sqlite.Insert":
    """Return the database's own insert, which says what happens to existing rows."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


class clock(FunctionElement[float]):  # noqa: N801
    """The database's clock in a statement, in seconds since the epoch: hosts of one store share it (ruling Q1)."""

    type = Double()
    inherit_cache = True


@compiles(clock, "sqlite")
def _clock_on_sqlite(_element: clock, _compiler: object, **_: object) -> str:
    return "service_clock()"  # `open_store` defines it: SQLite's own has milliseconds


@compiles(clock, "postgresql")
def _clock_on_postgresql(_element: clock, _compiler: object, **_: object) -> str:
    return "extract(epoch FROM clock_timestamp())::double precision"


def now(store: Database) -> float:
    """Return the time on the database's clock, which judges when a host was seen and what has expired."""
    if store.dialect.name == "sqlite":
        return time.time()  # as `service_clock` does, without a statement
    return scalar(store, select(clock())) or 0.0
