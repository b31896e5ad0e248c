"""Tables of trees: tasks, jobs, events, states, and writers."""

from sqlalchemy import JSON, Boolean, Column, Double, Index, Integer, String, Table

from activities.store.schema.columns import TOKENS, CleanText, metadata, of, only

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", String(80), primary_key=True),
    Column("root_job_id", String(80), nullable=False, unique=True),
    Column("repo", of("repo"), nullable=False),
    Column("title", CleanText, nullable=False),
    Column("state", String(20), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("reason", CleanText, nullable=False),
    Column("next", CleanText, nullable=False),
    Column("waits_for", String(20), nullable=False),
    Column("to_retry", String(80), nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("paused_seconds", Double, nullable=False, server_default="0"),
    Column("paused_since", Double),
    Index("tasks_by_state", "state", "opened_at"),
)

_SPENT = "agent repo model ended_at started_at queued_at input_tokens output_tokens cost_usd price_assumed requests"
"""All columns that summing up usage reads, as a covering index."""

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("root_job_id", String(80), nullable=False),
    Column("parent_job_id", String(80)),
    Column("delegation_id", of("id")),
    Column("delegation_depth", Integer, nullable=False),
    Column("task_id", String(80), nullable=False),
    Column("repo", of("repo"), nullable=False),
    Column("agent", of("role"), nullable=False),
    Column("ephemeral", Boolean, nullable=False),
    Column("runtime", String(32), nullable=False),
    Column("action", String(20), nullable=False),
    Column("continuation", String(20), nullable=False),
    Column("state", String(20), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("moves", Integer, nullable=False, server_default="0"),
    Column("reason", CleanText, nullable=False),
    Column("next", CleanText, nullable=False),
    Column("waits_for", String(20), nullable=False),
    Column("decision", String(20)),
    Column("summary", CleanText, nullable=False),
    Column("model", of("model")),
    Column("effort", of("effort")),
    Column("phase", of("phase")),
    Column("branch", CleanText),
    Column("head_sha", String(64)),
    Column("pull_request", Integer),
    Column("issue", Integer),
    Column("result_digest", String(64)),
    Column("input_tokens", TOKENS, nullable=False),
    Column("output_tokens", TOKENS, nullable=False),
    Column("requests", TOKENS),
    Column("cost_usd", Double, nullable=False),
    Column("price_assumed", Boolean, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("preflight_failed", CleanText),
    Index("jobs_by_root", "root_job_id"),
    Index("jobs_by_time", "queued_at", "job_id", "root_job_id", "agent", "delegation_id"),  # covers searches
    Index("jobs_by_state", "state", "queued_at"),
    Index("jobs_by_spender", *_SPENT.split()),
    Index("jobs_by_pull_request", "pull_request", "queued_at", **only("pull_request IS NOT NULL")),
    Index("jobs_by_issue", "issue", "queued_at", **only("issue IS NOT NULL")),
    Index("jobs_by_preflight", "queued_at", **only("preflight_failed IS NOT NULL")),
)

events = Table(
    "events",
    metadata,
    Column("event_id", String(100), primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("job_id", String(80), nullable=False),
    Column("root_job_id", String(80), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("at", Double, nullable=False),
    Column("message", CleanText, nullable=False),
    Column("data", JSON, nullable=False),
    Index("events_by_root", "root_job_id", "seq", unique=True),
    Index("events_by_kind", "kind", "at"),
)

trees = Table(
    "trees",
    metadata,
    Column("root_job_id", String(80), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("start", JSON, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("state", JSON(none_as_null=True)),
)

writers = Table(
    "writers",
    metadata,
    Column("root_job_id", String(80), primary_key=True),
    Column("run_id", String(64), nullable=False),
    Column("first", Integer, nullable=False),
    Column("anew", Boolean, nullable=False),
    Column("shift", Integer, nullable=False),
    Column("event_shift", Integer),
    Column("former", JSON, nullable=False),
)
"""The workflow run that may write a tree's rows, and the numbers to add to its revisions and events."""
