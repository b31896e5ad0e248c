"""The number of a job's attempts that moved away from a host: people are shown the count of jobs without them."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("moves", sa.Integer, nullable=False, server_default="0"))
