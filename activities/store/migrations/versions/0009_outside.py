"""Which run of a tree's workflow writes its rows."""

import sqlalchemy as sa
from alembic import op

revision = "0009_outside"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "writers",
        sa.Column("root_job_id", sa.String(80), primary_key=True),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("anew", sa.Boolean, nullable=False),
        sa.Column("shift", sa.Integer, nullable=False),
        sa.Column("event_shift", sa.Integer),
        sa.Column("former", sa.JSON, nullable=False),
    )
