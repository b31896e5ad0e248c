"""The attempts that moved away from a lost host."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "moves",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kept", sa.String(400)),
        sa.Index("moves_by_host", "host", "kept"),
    )
