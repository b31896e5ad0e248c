"""Labels that repositories and agents ask of a host, and the hosts that attempts were placed on."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    for table in ("repos", "agents"):
        for name in ("require", "prefer"):
            op.add_column(table, sa.Column(name, sa.JSON, nullable=False, server_default="[]"))
    op.add_column("hosts", sa.Column("placed", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "placements",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Index("placements_by_host", "host", "at"),
        sa.Index("placements_by_repo", "repo", "host"),
    )
