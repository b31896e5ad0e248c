"""Pipelines, their runs and the stages of those."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "pipelines",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("repo", sa.String(200)),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("scheduled", sa.Boolean, nullable=False),
        sa.Column("format", sa.String(8), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )
    op.create_table(
        "pipeline_runs",
        sa.Column("run_id", sa.String(80), primary_key=True),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("trigger", sa.String(20), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("halt_stage", sa.String(64)),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
    )
    op.create_index("pipeline_runs_by_time", "pipeline_runs", ["started_at", "run_id"])
    op.create_index("pipeline_runs_by_pipeline", "pipeline_runs", ["pipeline", "started_at"])
    op.create_table(
        "pipeline_stages",
        sa.Column("run_id", sa.String(80), sa.ForeignKey("pipeline_runs.run_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("stage_id", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("needs", sa.JSON, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("job_id", sa.String(80)),
        sa.Column("decision", sa.String(20)),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("tokens", sa.Integer, nullable=False),
    )
