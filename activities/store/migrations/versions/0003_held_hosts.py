"""Why a host starts nothing at the moment."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("held", sa.Text, nullable=False, server_default=""))
