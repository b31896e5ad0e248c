"""Why a host starts nothing at the moment."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("held", sa.Text, nullable=False, server_default=""))
