"""The fleet: more about each host, what all hosts have in common, and invitations to join."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for column in (
        sa.Column("machine", sa.String(64), nullable=False, server_default=""),
        sa.Column("key", sa.String(64), nullable=False, server_default=""),
        sa.Column("labels", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("address", sa.Text, nullable=False, server_default=""),
        sa.Column("taken", sa.Integer, nullable=False, server_default="0"),
        sa.Column("draining_at", sa.Double),
        sa.Column("lost_at", sa.Double),
    ):
        op.add_column("hosts", column)
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(255), nullable=False),
        sa.Column("oldest_release", sa.String(64), nullable=False),
        sa.CheckConstraint("id = 1", name="cluster_has_one_row"),
    )
    op.create_table(
        "invites",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("used_at", sa.Double),
        sa.Column("used_by", sa.String(200), nullable=False, server_default=""),
    )
