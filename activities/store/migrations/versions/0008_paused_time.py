"""What of a tree's time was a pause."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("tasks", sa.Column("paused_seconds", sa.Double, nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("paused_since", sa.Double))
