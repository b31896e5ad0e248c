"""The labels that attempts require, so that an attempt that waits at a full host can move to a host with these
labels.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("placements", sa.Column("require", sa.JSON, nullable=False, server_default="[]"))
