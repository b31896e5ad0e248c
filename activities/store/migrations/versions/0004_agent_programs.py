"""What agent programs make one keep: tries that were put off, and what each session had used when it was last seen."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "deferrals",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("runtime", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
    )
    op.create_table(
        "agent_sessions",
        sa.Column("runtime", sa.String(32), primary_key=True),
        sa.Column("session", sa.String(200), primary_key=True),
        sa.Column("turn", sa.String(120), nullable=False),
        sa.Column("input_before", sa.BigInteger, nullable=False),
        sa.Column("output_before", sa.BigInteger, nullable=False),
        sa.Column("input_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
    )
