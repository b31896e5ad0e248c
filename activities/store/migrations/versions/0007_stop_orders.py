"""Orders to stop what a host has begun."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("claims", sa.Column("stop_at", sa.Double))
