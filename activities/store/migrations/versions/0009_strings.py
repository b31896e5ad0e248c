"""Tokens are counted beyond what a small integer holds."""

import sqlalchemy as sa
from alembic import op

revision = "0009_strings"
down_revision = "0009_cluster"

COUNTED = {
    "jobs": ("input_tokens", "output_tokens"),
    "pipeline_runs": ("tokens",),
    "pipeline_stages": ("tokens",),
    "deferrals": ("input_tokens", "output_tokens"),
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":  # its integers are as large as they need to be
        return
    for table, columns in COUNTED.items():
        for column in columns:
            op.alter_column(table, column, type_=sa.BigInteger, existing_nullable=False)
