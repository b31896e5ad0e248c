"""Rounds that wait for people, and the outbox of what they are told."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "rounds",
        sa.Column("round_id", sa.String(100), primary_key=True),
        sa.Column("root_job_id", sa.String(80), nullable=False),
        sa.Column("coordinator_id", sa.String(80), nullable=False),
        sa.Column("job_id", sa.String(80), nullable=False),
        sa.Column("task_id", sa.String(80), nullable=False),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("questions", sa.JSON, nullable=False),
        sa.Column("failing", sa.JSON, nullable=False),
        sa.Column("verbs", sa.JSON, nullable=False),
        sa.Column("commands", sa.JSON, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("end", sa.String(20)),
        sa.Column("closed_at", sa.Double),
        sa.Column("closed", sa.Text, nullable=False),
        sa.Column("said", sa.Text, nullable=False),
    )
    op.create_index("rounds_by_root", "rounds", ["root_job_id"])
    op.create_index("rounds_open", "rounds", ["closed_at", "opened_at"])
    op.create_table(
        "notifications",
        sa.Column("notification_id", sa.String(120), primary_key=True),
        sa.Column("root_job_id", sa.String(80), nullable=False),
        sa.Column("job_id", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column(
            "notification_id",
            sa.String(120),
            sa.ForeignKey("notifications.notification_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("channel", sa.String(20), primary_key=True),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("delivered_at", sa.Double),
        sa.Column("error", sa.Text, nullable=False),
    )
