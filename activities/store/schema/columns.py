"""What the tables share: where they are gathered, and how wide a column is."""

from sqlalchemy import BigInteger, Integer, MetaData, String

from workflows.contract.strings import BOUNDS

metadata = MetaData()

TOKENS = BigInteger().with_variant(Integer(), "sqlite")  # whose integers are as large as they need to be


def of(name: str) -> String:
    """As wide as the contract's bound of that name (ruling B6)."""
    return String(BOUNDS[name].characters)
