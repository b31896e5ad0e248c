"""The seal keys that all hosts know, which of them each host has, and people's tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("keys", sa.JSON, nullable=False, server_default="[]"))
    op.create_table(
        "seal_keys",
        sa.Column("fingerprint", sa.String(64), primary_key=True),
        sa.Column("wrapped", sa.String(200), nullable=False),
        sa.Column("under", sa.String(64), nullable=False),
        sa.Column("offered_at", sa.Double, nullable=False),
        sa.Column("seals_since", sa.Double),
        sa.Column("left_at", sa.Double),
        sa.Column("removed_at", sa.Double),
    )
    op.create_table(
        "tokens",
        sa.Column("name", sa.String(80), primary_key=True),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("made_at", sa.Double, nullable=False),
    )
