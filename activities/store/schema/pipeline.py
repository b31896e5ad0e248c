"""Tables of pipelines, their runs and stages."""

from sqlalchemy import JSON, Boolean, Column, Double, ForeignKey, Index, Integer, String, Table, false

from activities.store.schema.columns import TOKENS, CleanText, metadata, of

pipelines = Table(
    "pipelines",
    metadata,
    Column("name", of("id"), primary_key=True),
    Column("repo", of("repo")),
    Column("enabled", Boolean, nullable=False),
    Column("scheduled", Boolean, nullable=False),
    Column("format", String(8), nullable=False),
    Column("definition", CleanText, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("added_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
)

pipeline_runs = Table(
    "pipeline_runs",
    metadata,
    Column("run_id", String(80), primary_key=True),
    Column("pipeline", of("id"), nullable=False),
    Column("repo", of("repo"), nullable=False),
    Column("trigger", String(20), nullable=False),
    Column("definition", CleanText, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", CleanText, nullable=False),
    Column("halt_stage", of("id")),
    Column("revision", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("tokens", TOKENS, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("price_assumed", Boolean, nullable=False, server_default=false()),
    Column("pull_request", Integer),
    Column("issue", Integer),
    Index("pipeline_runs_by_time", "started_at", "run_id"),
    Index("pipeline_runs_by_pipeline", "pipeline", "started_at"),
)

pipeline_stages = Table(
    "pipeline_stages",
    metadata,
    Column("run_id", String(80), ForeignKey("pipeline_runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("stage_id", of("id"), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("needs", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", CleanText, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("job_id", String(80)),
    Column("decision", String(20)),
    Column("summary", CleanText, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("tokens", TOKENS, nullable=False),
)
