"""The number of a job's attempts that moved away from a host. The number of attempts that people see leaves them
out.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("moves", sa.Integer, nullable=False, server_default="0"))
