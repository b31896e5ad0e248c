"""Memory, and the full-text index of what is confirmed: kept in step by the database itself."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

SQLITE = (
    "CREATE VIEW memory_confirmed AS SELECT number, key_words, content_words FROM memory WHERE state = 'confirmed'",
    """
    CREATE VIRTUAL TABLE memory_search USING fts5(
        key_words, content_words, content='memory_confirmed', content_rowid='number', tokenize='porter ascii'
    )
    """,
    """
    CREATE TRIGGER memory_inserted AFTER INSERT ON memory WHEN new.state = 'confirmed' BEGIN
        INSERT INTO memory_search (rowid, key_words, content_words)
        VALUES (new.number, new.key_words, new.content_words);
    END
    """,
    """
    CREATE TRIGGER memory_updated AFTER UPDATE ON memory BEGIN
        INSERT INTO memory_search (memory_search, rowid, key_words, content_words)
        SELECT 'delete', old.number, old.key_words, old.content_words WHERE old.state = 'confirmed';
        INSERT INTO memory_search (rowid, key_words, content_words)
        SELECT new.number, new.key_words, new.content_words WHERE new.state = 'confirmed';
    END
    """,
    """
    CREATE TRIGGER memory_deleted AFTER DELETE ON memory WHEN old.state = 'confirmed' BEGIN
        INSERT INTO memory_search (memory_search, rowid, key_words, content_words)
        VALUES ('delete', old.number, old.key_words, old.content_words);
    END
    """,
)
"""The index reads its text from the view, so that what is pending or retired is in neither (ruling K2)."""

POSTGRESQL = (
    "CREATE TEXT SEARCH DICTIONARY memory_stem (TEMPLATE = snowball, LANGUAGE = english)",
    "CREATE TEXT SEARCH CONFIGURATION memory_search (COPY = simple)",
    """
    ALTER TEXT SEARCH CONFIGURATION memory_search
    ALTER MAPPING FOR asciiword, word, numword WITH memory_stem
    """,
    """
    ALTER TABLE memory ADD COLUMN memory_search tsvector GENERATED ALWAYS AS (
        setweight(to_tsvector('memory_search', key_words), 'A')
        || setweight(to_tsvector('memory_search', content_words), 'B')
    ) STORED
    """,
    "CREATE INDEX memory_search_index ON memory USING gin (memory_search) WHERE state = 'confirmed'",
)
"""Stems as on SQLite, and leaves out no word: what a query need not look for is decided where it is read."""


def upgrade() -> None:
    op.create_table(
        "memory",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("agent", sa.String(200)),
        sa.Column("repo", sa.String(200)),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("key_words", sa.Text, nullable=False),
        sa.Column("content_words", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("job_id", sa.String(80)),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("decided_by", sa.String(200)),
        sa.Column("decided_at", sa.Double),
    )
    op.create_index("memory_by_state", "memory", ["state", "number"])
    for statement in SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL:
        op.execute(sa.text(statement))
