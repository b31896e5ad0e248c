"""A repository may be known by its remote, and has a checkout on each host that registered one."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    checkouts = op.create_table(
        "checkouts",
        sa.Column("repo", sa.String(200), sa.ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("host", sa.String(200), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("added_at", sa.Double, nullable=False),
    )
    repos = sa.table("repos", *map(sa.column, ("name", "host", "path", "added_at")))
    op.execute(checkouts.insert().from_select(["repo", "host", "path", "added_at"], sa.select(repos)))
    op.drop_column("repos", "path")
    op.drop_column("repos", "host")
    for name, kind in (("remote", sa.Text), ("default_branch", sa.Text), ("refs", sa.String(40))):
        op.add_column("repos", sa.Column(name, kind, nullable=False, server_default=""))
