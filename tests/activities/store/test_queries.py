"""Reading and writing rows, by an engine and within a caller's transaction."""

import pytest
from sqlalchemy import Engine, delete, func, select, update

from activities.store import schema
from activities.store.queries import insert_new, one, scalar, scalars, transaction, upsert, write

TABLE = schema.tokens


def token(name: str, scope: str = "read") -> dict[str, object]:
    return {"name": name, "scope": scope, "digest": f"digest of {name}", "made_at": 1.0}


def test_of_several_rows_those_are_counted_that_are_new(store: Engine) -> None:
    assert insert_new(store, TABLE, token("a"), token("b")) == 2
    assert insert_new(store, TABLE, token("a", "act"), token("b"), token("c")) == 1
    assert insert_new(store, TABLE) == 0
    upsert(store, TABLE, token("b", "act"), token("d"))
    assert scalars(store, select(TABLE.c.scope).order_by(TABLE.c.name)) == ["read", "act", "read", "read"]
    assert write(store, update(TABLE).where(TABLE.c.scope == "read").values(made_at=2.0)) == 3
    assert write(store, delete(TABLE).where(TABLE.c.name == "x")) == 0
    assert one(store, select(TABLE).where(TABLE.c.name == "x")) is None
    assert scalar(store, select(TABLE.c.name).where(TABLE.c.name == "x")) is None


def test_what_is_written_within_a_transaction_goes_when_it_fails(store: Engine) -> None:
    def writes_and_fails() -> None:
        with store.begin() as connection:
            with transaction(connection) as same:
                insert_new(same, TABLE, token("a"))
            assert scalar(connection, select(func.count()).select_from(TABLE)) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        writes_and_fails()
    assert scalar(store, select(func.count()).select_from(TABLE)) == 0
