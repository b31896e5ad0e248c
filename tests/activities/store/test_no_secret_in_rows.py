"""Every column that can hold a secret is redacted, whatever writes it (ruling N7)."""

import pytest
from sqlalchemy import JSON, Engine, insert, select, update

from activities.store import schema
from activities.store.schema.columns import CleanText, Path
from activities.store.schema.columns import String as Named

TOKEN = "ghp" + "_" + "a1B2" * 9

OURS = {
    "attempts.run_dir", "attempts.worktree", "checkouts.path", "kept_secrets.path",
    "repos.default_branch", "repos.remote",  # where something is
}  # fmt: skip
"""The service's own texts, which it must find again."""


@pytest.mark.ruling("N7")
def test_no_text_column_goes_round_redaction() -> None:
    plain = {
        f"{table.name}.{column.name}"
        for table in schema.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, Path)
    }
    assert {name for name in plain if not name.startswith("alembic")} == OURS


@pytest.mark.ruling("N7")
def test_a_secret_does_not_get_into_a_row(store: Engine) -> None:
    """Try insert and update; a text, a name, and text inside JSON."""
    row = {
        "event_id": "job-0123456789ab/1", "seq": 1, "job_id": "job-0123456789ab", "root_job_id": "job-0123456789ab",
        "kind": "k", "at": 1.0, "message": f"it is {TOKEN}", "data": {"a": [f"is {TOKEN}"], TOKEN: ("x",)},
    }  # fmt: skip
    with store.begin() as connection:
        connection.execute(insert(schema.events), row)
        kept = connection.execute(select(schema.events)).one()
        assert kept.message == "it is [redacted]"
        assert kept.data == {"a": ["is [redacted]"], "[redacted]": ["x"]}
        connection.execute(update(schema.events).values(message=f"now {TOKEN}", data=[TOKEN]))
        kept = connection.execute(select(schema.events)).one()
        assert (kept.message, kept.data) == ("now [redacted]", ["[redacted]"])


@pytest.mark.ruling("N7")
def test_a_name_that_holds_a_secret_is_found_by_it_again(store: Engine) -> None:
    pipeline = {
        "name": TOKEN,
        "repo": "acme/shop",
        "enabled": True,
        "scheduled": False,
        "format": "yaml",
        "definition": "x",
    }
    with store.begin() as connection:
        connection.execute(insert(schema.pipelines), pipeline | {"digest": "d", "added_at": 1.0, "updated_at": 1.0})
        assert connection.execute(select(schema.pipelines.c.name).where(schema.pipelines.c.name == TOKEN)).scalar()


@pytest.mark.ruling("N7")
def test_kinds_of_columns_are_what_migrations_made() -> None:
    kinds = {type(column.type) for table in schema.metadata.tables.values() for column in table.columns}
    assert {CleanText, Named, JSON} <= kinds
