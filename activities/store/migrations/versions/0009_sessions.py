"""How long an agent's program keeps its session (ruling K3)."""

import sqlalchemy as sa
from alembic import op

revision = "0009_sessions"
down_revision = "0009_models"


def upgrade() -> None:
    op.add_column("agents", sa.Column("session", sa.String(16), nullable=False, server_default="fresh"))
