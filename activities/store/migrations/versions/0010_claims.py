"""Claims: who has an offered attempt. Events in one sequence for each tree.

Revision ID: 0010_claims
Revises: 0009_outside
"""

import sqlalchemy as sa
from alembic import op

revision = "0010_claims"
down_revision = "0009_outside"


def upgrade() -> None:
    op.create_table(
        "claims",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("offer", sa.Integer, nullable=False),
        sa.Column("begun_at", sa.Double),
    )
    op.drop_index("events_by_root", table_name="events")
    op.create_index("events_by_root", "events", ["root_job_id", "seq"], unique=True)
