"""The table of memory."""

from sqlalchemy import Column, Double, Index, Integer, Table

from activities.store.schema.columns import CleanText, String, metadata, of

memory = Table(
    "memory",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("agent", String(200)),
    Column("repo", of("repo")),
    Column("key", CleanText, nullable=False),
    Column("content", CleanText, nullable=False),
    Column("key_words", CleanText, nullable=False),
    Column("content_words", CleanText, nullable=False),
    Column("state", String(20), nullable=False),
    Column("author", String(200), nullable=False),
    Column("job_id", String(80)),
    Column("created_at", Double, nullable=False),
    Column("decided_by", String(200)),
    Column("decided_at", Double),
    Index("memory_by_state", "state", "number"),
)
"""Confirmed entries are also in `memory_search`: on SQLite a separate FTS5 table, on PostgreSQL a column."""
