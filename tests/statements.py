"""Statements compiled once for all SQLite stores of a test run: SQLAlchemy compiles them anew for each engine."""

from typing import Any

from sqlalchemy import Dialect, Engine, create_engine

from activities.store import database

_DIALECTS: dict[str, Dialect] = {}
_COMPILED: dict[Any, Any] = {}


def share() -> None:
    """Give the engines that the product makes from now on one dialect, by which compiled statements are kept."""
    vars(database)["create_engine"] = _sharing


def _sharing(url: str, **options: Any) -> Engine:
    engine = create_engine(url, **options)
    if engine.dialect.name == "sqlite":
        engine.dialect = _DIALECTS.setdefault(engine.dialect.name, engine.dialect)
        engine.update_execution_options(compiled_cache=_COMPILED)
    return engine
