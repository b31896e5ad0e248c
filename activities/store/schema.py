"""The tables. Migrations build them; this is what the code reads them by. Times are seconds since the epoch."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

metadata = MetaData()

repos = Table(
    "repos",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("path", Text, nullable=False),
    Column("host", String(200), nullable=False),
    Column("added_at", Double, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("runtime", String(32), nullable=False),
    Column("command", JSON, nullable=False),
    Column("model", String(200)),
    Column("effort", String(64)),
    Column("template", Text),
    Column("role", Text),
    Column("capabilities", JSON, nullable=False),
    Column("autonomy_policy", String(32), nullable=False),
    Column("session", String(16), nullable=False, server_default="fresh"),
    Column("added_at", Double, nullable=False),
)

agent_repos = Table(
    "agent_repos",
    metadata,
    Column("agent", String(64), ForeignKey("agents.name", ondelete="CASCADE"), primary_key=True),
    Column("repo", String(200), ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
)

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", String(80), primary_key=True),
    Column("root_job_id", String(80), nullable=False, unique=True),
    Column("repo", String(200), nullable=False),
    Column("title", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("next", Text, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("paused_seconds", Double, nullable=False, server_default="0"),
    Column("paused_since", Double),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("root_job_id", String(80), nullable=False),
    Column("parent_job_id", String(80)),
    Column("delegation_id", String(64)),
    Column("delegation_depth", Integer, nullable=False),
    Column("task_id", String(80), nullable=False),
    Column("repo", String(200), nullable=False),
    Column("agent", String(200), nullable=False),
    Column("ephemeral", Boolean, nullable=False),
    Column("runtime", String(32), nullable=False),
    Column("action", String(20), nullable=False),
    Column("continuation", String(20), nullable=False),
    Column("state", String(20), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("next", Text, nullable=False),
    Column("decision", String(20)),
    Column("summary", Text, nullable=False),
    Column("model", String(200)),
    Column("effort", String(64)),
    Column("phase", String(200)),
    Column("branch", Text),
    Column("head_sha", String(64)),
    Column("pull_request", Integer),
    Column("result_digest", String(64)),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("price_assumed", Boolean, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("preflight_failed", Text),
    Index("jobs_by_root", "root_job_id"),
    Index("jobs_by_time", "queued_at"),
    Index("jobs_by_state", "state", "queued_at"),
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
    Column("message", Text, nullable=False),
    Column("data", JSON, nullable=False),
    Index("events_by_root", "root_job_id", "seq", unique=True),
    Index("events_by_kind", "kind"),
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
"""Which run of a tree's workflow writes its rows, and how far on they are numbered."""

runs = Table(
    "runs",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("host", String(200), nullable=False),
    Column("run_dir", Text, nullable=False),
    Column("worktree", Text),
    Column("branch", Text),
    Column("base_sha", String(64)),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", JSON),
    Column("payload", JSON),
    Column("diagnostics", JSON),
)

claims = Table(
    "claims",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("offer", Integer, nullable=False),
    Column("begun_at", Double),
)

hosts = Table(
    "hosts",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("version", String(64), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("stopped_at", Double),
)
"""Each host's worker says every few seconds that it is there."""

reviews = Table(
    "reviews",
    metadata,
    Column("review_id", String(80), primary_key=True),
    Column("repo", String(200)),
    Column("pull_request", Integer, nullable=False),
    Column("head_sha", String(64), nullable=False),
    Column("workflow", String(200), nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("verdict", Text),
    Index("reviews_by_pull_request", "pull_request"),
)

review_notes = Table(
    "review_notes",
    metadata,
    Column("review_id", String(80), ForeignKey("reviews.review_id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("author", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Double, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("round_id", String(100), primary_key=True),
    Column("root_job_id", String(80), nullable=False),
    Column("coordinator_id", String(80), nullable=False),
    Column("job_id", String(80), nullable=False),
    Column("task_id", String(80), nullable=False),
    Column("repo", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("questions", JSON, nullable=False),
    Column("failing", JSON, nullable=False),
    Column("verbs", JSON, nullable=False),
    Column("commands", JSON, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("end", String(20)),
    Column("closed_at", Double),
    Column("closed", Text, nullable=False),
    Column("said", Text, nullable=False),
    Index("rounds_by_root", "root_job_id"),
    Index("rounds_open", "closed_at", "opened_at"),
)

notifications = Table(
    "notifications",
    metadata,
    Column("notification_id", String(120), primary_key=True),
    Column("root_job_id", String(80), nullable=False),
    Column("job_id", String(80), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("message", Text, nullable=False),
    Column("at", Double, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column(
        "notification_id",
        String(120),
        ForeignKey("notifications.notification_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("channel", String(20), primary_key=True),
    Column("attempts", Integer, nullable=False),
    Column("delivered_at", Double),
    Column("error", Text, nullable=False),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("subject", String(100), nullable=False),
    Column("reserved_at", Double, nullable=False),
    Column("answer", JSON(none_as_null=True)),
    Index("idempotency_by_time", "reserved_at"),
)

memory = Table(
    "memory",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("agent", String(200)),
    Column("repo", String(200)),
    Column("key", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("key_words", Text, nullable=False),
    Column("content_words", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("author", String(200), nullable=False),
    Column("job_id", String(80)),
    Column("created_at", Double, nullable=False),
    Column("decided_by", String(200)),
    Column("decided_at", Double),
    Index("memory_by_state", "state", "number"),
)
"""What is confirmed is also in `memory_search`: on SQLite an FTS5 table beside it, on PostgreSQL a column of it."""

pipelines = Table(
    "pipelines",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("repo", String(200)),
    Column("enabled", Boolean, nullable=False),
    Column("scheduled", Boolean, nullable=False),
    Column("format", String(8), nullable=False),
    Column("definition", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("added_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
)

pipeline_runs = Table(
    "pipeline_runs",
    metadata,
    Column("run_id", String(80), primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("repo", String(200), nullable=False),
    Column("trigger", String(20), nullable=False),
    Column("definition", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("halt_stage", String(64)),
    Column("revision", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("tokens", Integer, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("price_assumed", Boolean, nullable=False, server_default=false()),
    Index("pipeline_runs_by_time", "started_at", "run_id"),
    Index("pipeline_runs_by_pipeline", "pipeline", "started_at"),
)

pipeline_stages = Table(
    "pipeline_stages",
    metadata,
    Column("run_id", String(80), ForeignKey("pipeline_runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("stage_id", String(64), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("needs", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("job_id", String(80)),
    Column("decision", String(20)),
    Column("summary", Text, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("tokens", Integer, nullable=False),
)

deferrals = Table(
    "deferrals",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("runtime", String(32), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("message", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
)

agent_sessions = Table(
    "agent_sessions",
    metadata,
    Column("runtime", String(32), primary_key=True),
    Column("session", String(200), primary_key=True),
    Column("turn", String(120), nullable=False),
    Column("input_before", BigInteger, nullable=False),
    Column("output_before", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
)
