"""The hosts whose workers have been seen, and when."""

import sqlalchemy as sa
from alembic import op

revision = "0009_cluster"
down_revision = "0009_sessions"


def upgrade() -> None:
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("stopped_at", sa.Double),
    )
