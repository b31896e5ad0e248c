"""What the tables share: where they are gathered, and how wide a column is."""

from typing import Any

from sqlalchemy import BigInteger, Integer, MetaData, String, text

from workflows.contract.strings import BOUNDS

metadata = MetaData()

TOKENS = BigInteger().with_variant(Integer(), "sqlite")  # whose integers are as large as they need to be


def of(name: str) -> String:
    """As wide as the contract's bound of that name (ruling B6)."""
    return String(BOUNDS[name].characters)


def only(condition: str) -> dict[str, Any]:
    """Options of an index of few rows of a table."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}
