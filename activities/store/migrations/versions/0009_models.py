"""Whether some of what a pipeline run cost is a guess."""

import sqlalchemy as sa
from alembic import op

revision = "0009_models"
down_revision = "0010_claims"


def upgrade() -> None:
    op.add_column("pipeline_runs", sa.Column("price_assumed", sa.Boolean, nullable=False, server_default=sa.false()))
