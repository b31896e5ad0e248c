"""The labels that attempts require: those that wait at a full host are offered to one that has them."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("placements", sa.Column("require", sa.JSON, nullable=False, server_default="[]"))
