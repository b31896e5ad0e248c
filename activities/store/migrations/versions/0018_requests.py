"""The requests of jobs to their models, and those of tries that were put off (ruling S6)."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    for table in ("jobs", "deferrals"):
        op.add_column(table, sa.Column("requests", sa.BigInteger().with_variant(sa.Integer(), "sqlite")))
