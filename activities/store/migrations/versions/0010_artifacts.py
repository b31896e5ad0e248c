"""Content by digest in a store that several hosts share, and the hosts that have kept secrets."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Column("used_at", sa.Double, nullable=False),
    )
    op.create_index("ix_artifacts_used_at", "artifacts", ["used_at"])
    op.create_table(
        "artifact_parts",
        sa.Column("digest", sa.String(64), sa.ForeignKey("artifacts.digest", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "kept_secrets",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("host", sa.String(200), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
    )
