"""Keys of calls that start something: a repeated one finds what the first one started (ruling J9)."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(100), nullable=False),
        sa.Column("reserved_at", sa.Double, nullable=False),
        sa.Column("answer", sa.JSON),
    )
    op.create_index("idempotency_by_time", "idempotency", ["reserved_at"])
