"""The tables' shared metadata and types of columns."""

from typing import Any

import sqlalchemy
from sqlalchemy import JSON, BigInteger, Integer, MetaData
from sqlalchemy.types import TypeDecorator

from activities.redaction.redact import redact_text
from workflows.contract.size_limits import BOUNDS

metadata = MetaData()

Path = sqlalchemy.Text
"""A path, stored without redaction: the service must find it again as it is."""

TOKENS = BigInteger().with_variant(Integer(), "sqlite")  # SQLite's integers have 64 bits


class CleanText(TypeDecorator[str]):
    """Text from which secrets are removed whenever it is written (ruling N7)."""

    impl = sqlalchemy.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        return value if value is None else redact_text(value)


class String(TypeDecorator[str]):
    """Text of a limited length, from which secrets are removed."""

    impl = sqlalchemy.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        clean = value if value is None else redact_text(value)
        return clean if clean is None or clean == value else clean[: self.length]


class Names(TypeDecorator[list[str]]):
    """A list of names. Other values, written by hand, are ignored: one bad row must not stop a whole fleet."""

    impl = JSON
    cache_ok = True

    def process_result_value(self, value: object, dialect: object) -> list[str]:
        return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def of(name: str) -> String:
    """Return a type with the width of the contract's bound of that name (ruling B6)."""
    return String(BOUNDS[name].characters)


def only(condition: str) -> dict[str, Any]:
    """Return the options of a partial index, for readers: a migration builds it. A function, since an option of a
    dialect imports that dialect.
    """
    return {"info": {"where": condition}}
