"""What the tables share: where they are gathered, and how wide a column is."""

from typing import Any

import sqlalchemy
from sqlalchemy import BigInteger, Integer, MetaData, text
from sqlalchemy.types import TypeDecorator

from activities.redaction.redacted import redacted
from workflows.contract.strings import BOUNDS

metadata = MetaData()

Path = sqlalchemy.Text
"""Where something lies: the service's own words, which it must find again as they are."""

TOKENS = BigInteger().with_variant(Integer(), "sqlite")  # whose integers are as large as they need to be


class Text(TypeDecorator[str]):
    """Text in which no secret is stored, whatever writes it (ruling N7)."""

    impl = sqlalchemy.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        return value if value is None else redacted(value)


class String(TypeDecorator[str]):
    """The same, of a width."""

    impl = sqlalchemy.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        clean = value if value is None else redacted(value)
        return clean if clean is None or clean == value else clean[: self.length]


def of(name: str) -> String:
    """As wide as the contract's bound of that name (ruling B6)."""
    return String(BOUNDS[name].characters)


def only(condition: str) -> dict[str, Any]:
    """Options of an index of few rows of a table."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}
