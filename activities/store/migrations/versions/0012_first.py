"""The complete schema of 0.2.0, the first release whose stores later releases can migrate.

This revision never changes, so tables are described here and in `schema`: `schema` has their present form, and later
revisions the steps from here to there.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = None

TOKENS = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # whose integers are as large as they need to be


def only(condition: str) -> dict[str, Any]:
    """Return the options of an index over those rows of a table that meet a condition."""
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


SQLITE = (
    "CREATE VIEW memory_confirmed AS SELECT number, key_words, content_words FROM memory WHERE state = 'confirmed'",
    """
    CREATE VIRTUAL TABLE memory_search USING fts5(
        key_words, content_words, content='memory_confirmed', content_rowid='number', tokenize='porter ascii'
    )
    """,
    """
    CREATE TRIGGER memory_inserted AFTER INSERT ON memory WHEN new.state = 'confirmed' BEGIN
        INSERT INTO memory_search (rowid, key_words, content_words)
        VALUES (new.number, new.key_words, new.content_words);
    END
    """,
    """
    CREATE TRIGGER memory_updated AFTER UPDATE ON memory BEGIN
        INSERT INTO memory_search (memory_search, rowid, key_words, content_words)
        SELECT 'delete', old.number, old.key_words, old.content_words WHERE old.state = 'confirmed';
        INSERT INTO memory_search (rowid, key_words, content_words)
        SELECT new.number, new.key_words, new.content_words WHERE new.state = 'confirmed';
    END
    """,
    """
    CREATE TRIGGER memory_deleted AFTER DELETE ON memory WHEN old.state = 'confirmed' BEGIN
        INSERT INTO memory_search (memory_search, rowid, key_words, content_words)
        VALUES ('delete', old.number, old.key_words, old.content_words);
    END
    """,
)
"""The index reads its text from the view, so that neither has pending or retired entries (ruling K2)."""

POSTGRESQL = (
    "CREATE TEXT SEARCH DICTIONARY memory_stem (TEMPLATE = snowball, LANGUAGE = english)",
    "CREATE TEXT SEARCH CONFIGURATION memory_search (COPY = simple)",
    """
    ALTER TEXT SEARCH CONFIGURATION memory_search
    ALTER MAPPING FOR asciiword, word, numword WITH memory_stem
    """,
    """
    ALTER TABLE memory ADD COLUMN memory_search tsvector GENERATED ALWAYS AS (
        setweight(to_tsvector('memory_search', key_words), 'A')
        || setweight(to_tsvector('memory_search', content_words), 'B')
    ) STORED
    """,
    "CREATE INDEX memory_search_index ON memory USING gin (memory_search) WHERE state = 'confirmed'",
)
"""Stems words as SQLite does. Stop words stay in the index: the code that reads a query drops them."""


def upgrade() -> None:
    _registries()
    _fleet()
    _trees()
    _jobs()
    _attempts()
    _artifacts()
    _people()
    _reviews()
    _pipelines()
    _stages()
    _memory()
    _threads()
    _facts()
    _comments()
    _reading()
    _account()


def _registries() -> None:
    """Create the tables of repositories and agents."""
    op.create_table(
        "repos",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.Column("github", sa.String(200), nullable=False, server_default=""),
        sa.Column("remote", sa.Text, nullable=False, server_default=""),
        sa.Column("default_branch", sa.Text, nullable=False, server_default=""),
        sa.Column("refs", sa.String(40), nullable=False, server_default=""),
        sa.Column("require", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("prefer", sa.JSON, nullable=False, server_default="[]"),
    )
    op.create_table(
        "checkouts",
        sa.Column("repo", sa.String(200), sa.ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("host", sa.String(200), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("added_at", sa.Double, nullable=False),
    )
    op.create_table(
        "agents",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("runtime", sa.String(32), nullable=False),
        sa.Column("command", sa.JSON, nullable=False),
        sa.Column("model", sa.String(200)),
        sa.Column("effort", sa.String(64)),
        sa.Column("template", sa.Text),
        sa.Column("role", sa.Text),
        sa.Column("capabilities", sa.JSON, nullable=False),
        sa.Column("autonomy_policy", sa.String(32), nullable=False),
        sa.Column("session", sa.String(16), nullable=False, server_default="fresh"),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.Column("require", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("prefer", sa.JSON, nullable=False, server_default="[]"),
    )
    op.create_table(
        "agent_repos",
        sa.Column("agent", sa.String(64), sa.ForeignKey("agents.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("repo", sa.String(200), sa.ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
    )


def _fleet() -> None:
    """Create the tables of hosts: what they share, invitations to join them, seal keys, people's tokens."""
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("stopped_at", sa.Double),
        sa.Column("held", sa.Text, nullable=False, server_default=""),
        sa.Column("machine", sa.String(64), nullable=False, server_default=""),
        sa.Column("key", sa.String(64), nullable=False, server_default=""),
        sa.Column("labels", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("address", sa.Text, nullable=False, server_default=""),
        sa.Column("taken", sa.Integer, nullable=False, server_default="0"),
        sa.Column("draining_at", sa.Double),
        sa.Column("lost_at", sa.Double),
        sa.Column("keys", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("placed", sa.Integer, nullable=False, server_default="0"),
    )
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(255), nullable=False),
        sa.Column("oldest_release", sa.String(64), nullable=False),
        sa.CheckConstraint("id = 1", name="cluster_has_one_row"),
    )
    op.create_table(
        "invites",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("used_at", sa.Double),
        sa.Column("used_by", sa.String(200), nullable=False, server_default=""),
    )
    op.create_table(
        "seal_keys",
        sa.Column("fingerprint", sa.String(64), primary_key=True),
        sa.Column("wrapped", sa.String(200), nullable=False),
        sa.Column("under", sa.String(64), nullable=False),
        sa.Column("offered_at", sa.Double, nullable=False),
        sa.Column("seals_since", sa.Double),
        sa.Column("left_at", sa.Double),
        sa.Column("removed_at", sa.Double),
    )
    op.create_table(
        "tokens",
        sa.Column("name", sa.String(80), primary_key=True),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("made_at", sa.Double, nullable=False),
    )


def _trees() -> None:
    """Create the tables of tasks, trees, their writers and their events."""
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.String(80), primary_key=True),
        sa.Column("root_job_id", sa.String(80), nullable=False, unique=True),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("next", sa.Text, nullable=False),
        sa.Column("waits_for", sa.String(20), nullable=False),
        sa.Column("to_retry", sa.String(80), nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("paused_seconds", sa.Double, nullable=False, server_default="0"),
        sa.Column("paused_since", sa.Double),
    )
    op.create_index("tasks_by_state", "tasks", ["state", "opened_at"])
    op.create_table(
        "trees",
        sa.Column("root_job_id", sa.String(80), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("start", sa.JSON, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("state", sa.JSON),
    )
    op.create_table(
        "writers",
        sa.Column("root_job_id", sa.String(80), primary_key=True),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("anew", sa.Boolean, nullable=False),
        sa.Column("shift", sa.Integer, nullable=False),
        sa.Column("event_shift", sa.Integer),
        sa.Column("former", sa.JSON, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("event_id", sa.String(100), primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("job_id", sa.String(80), nullable=False),
        sa.Column("root_job_id", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
    )
    op.create_index("events_by_kind", "events", ["kind", "at"])
    op.create_index("events_by_root", "events", ["root_job_id", "seq"], unique=True)


def _jobs() -> None:
    """Create the table of jobs."""
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("root_job_id", sa.String(80), nullable=False),
        sa.Column("parent_job_id", sa.String(80)),
        sa.Column("delegation_id", sa.String(64)),
        sa.Column("delegation_depth", sa.Integer, nullable=False),
        sa.Column("task_id", sa.String(80), nullable=False),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.Column("ephemeral", sa.Boolean, nullable=False),
        sa.Column("runtime", sa.String(32), nullable=False),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("continuation", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("next", sa.Text, nullable=False),
        sa.Column("waits_for", sa.String(20), nullable=False),
        sa.Column("decision", sa.String(20)),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("model", sa.String(200)),
        sa.Column("effort", sa.String(64)),
        sa.Column("phase", sa.String(200)),
        sa.Column("branch", sa.Text),
        sa.Column("head_sha", sa.String(64)),
        sa.Column("pull_request", sa.Integer),
        sa.Column("result_digest", sa.String(64)),
        sa.Column("input_tokens", TOKENS, nullable=False),
        sa.Column("output_tokens", TOKENS, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("price_assumed", sa.Boolean, nullable=False),
        sa.Column("queued_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("preflight_failed", sa.Text),
        sa.Column("issue", sa.Integer),
    )
    op.create_index("jobs_by_root", "jobs", ["root_job_id"])
    op.create_index("jobs_by_preflight", "jobs", ["queued_at"], **only("preflight_failed IS NOT NULL"))
    spent = "agent repo model ended_at started_at queued_at input_tokens output_tokens cost_usd price_assumed"
    op.create_index("jobs_by_spender", "jobs", spent.split())
    op.create_index("jobs_by_state", "jobs", ["state", "queued_at"])
    op.create_index("jobs_by_time", "jobs", ["queued_at", "job_id", "root_job_id", "agent", "delegation_id"])
    for number in ("pull_request", "issue"):
        op.create_index(f"jobs_by_{number}", "jobs", [number, "queued_at"], **only(f"{number} IS NOT NULL"))


def _attempts() -> None:
    """Create the tables of attempts: claims, hosts, attempts that were put off, sessions of agent programs."""
    op.create_table(
        "claims",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("offer", sa.Integer, nullable=False),
        sa.Column("begun_at", sa.Double),
        sa.Column("stop_at", sa.Double),
    )
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("run_dir", sa.Text, nullable=False),
        sa.Column("worktree", sa.Text),
        sa.Column("branch", sa.Text),
        sa.Column("base_sha", sa.String(64)),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("outcome", sa.JSON),
        sa.Column("payload", sa.JSON),
        sa.Column("diagnostics", sa.JSON),
        sa.Column("given", sa.JSON),
    )
    op.create_table(
        "placements",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Index("placements_by_host", "host", "at"),
        sa.Index("placements_by_repo", "repo", "host"),
    )
    op.create_table(
        "moves",
        sa.Column("job_id", sa.String(80), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kept", sa.String(400)),
        sa.Index("moves_by_host", "host", "kept"),
    )
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
        sa.Column("input_tokens", TOKENS, nullable=False),
        sa.Column("output_tokens", TOKENS, nullable=False),
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


def _artifacts() -> None:
    """Create the tables of artifacts in a shared store, by digest, and of the hosts that have kept secrets."""
    op.create_table(
        "artifacts",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Column("used_at", sa.Double, nullable=False),
    )
    op.create_index("ix_artifacts_used_at", "artifacts", ["used_at"])
    op.create_table(
        "artifact_parts",
        sa.Column("digest", sa.String(64), sa.ForeignKey("artifacts.digest", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "kept_secrets",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("host", sa.String(200), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
    )


def _people() -> None:
    """Create the tables of rounds that wait for people, and of notifications to send."""
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
    op.create_index("deliveries_open", "deliveries", ["notification_id"], **only("delivered_at IS NULL"))


def _reviews() -> None:
    """Create the table of reviews that were made in a session, which belong to no job."""
    op.create_table(
        "reviews",
        sa.Column("review_id", sa.String(80), primary_key=True),
        sa.Column("repo", sa.String(200)),
        sa.Column("pull_request", sa.Integer, nullable=False),
        sa.Column("head_sha", sa.String(64), nullable=False),
        sa.Column("workflow", sa.String(200), nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("closed_at", sa.Double),
        sa.Column("verdict", sa.Text),
    )
    op.create_index("reviews_by_pull_request", "reviews", ["pull_request"])
    op.create_table(
        "review_notes",
        sa.Column("review_id", sa.String(80), sa.ForeignKey("reviews.review_id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )


def _pipelines() -> None:
    """Create the tables of pipelines and of their runs."""
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
        sa.Column("tokens", TOKENS, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("price_assumed", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("pull_request", sa.Integer),
        sa.Column("issue", sa.Integer),
    )
    op.create_index("pipeline_runs_by_pipeline", "pipeline_runs", ["pipeline", "started_at"])
    op.create_index("pipeline_runs_by_time", "pipeline_runs", ["started_at", "run_id"])


def _stages() -> None:
    """Create the tables of runs' stages, and of the keys of calls that start something."""
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
        sa.Column("tokens", TOKENS, nullable=False),
    )
    op.create_table(
        "idempotency",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(100), nullable=False),
        sa.Column("reserved_at", sa.Double, nullable=False),
        sa.Column("answer", sa.JSON),
    )
    op.create_index("idempotency_by_time", "idempotency", ["reserved_at"])


def _memory() -> None:
    """Create the table of memory, and triggers that keep the full-text index of confirmed entries in step."""
    op.create_table(
        "memory",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("agent", sa.String(200)),
        sa.Column("repo", sa.String(200)),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("key_words", sa.Text, nullable=False),
        sa.Column("content_words", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("job_id", sa.String(80)),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("decided_by", sa.String(200)),
        sa.Column("decided_at", sa.Double),
    )
    op.create_index("memory_by_state", "memory", ["state", "number"])
    for statement in SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL:
        op.execute(sa.text(statement))


def _threads() -> None:
    """Create the table of the GitHub threads of trees."""
    op.create_table(
        "github_threads",
        sa.Column("root_job_id", sa.String(80), primary_key=True),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("github", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("bound_at", sa.Double, nullable=False),
        sa.Column("told_seq", sa.Integer, nullable=False),
        sa.Column("over", sa.Boolean, nullable=False),
        sa.Column("head_sha", sa.String(64)),
        sa.Column("closed", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("github_threads_by_number", "github_threads", ["github", "number"])
    op.create_index("github_threads_open", "github_threads", ["root_job_id"], **only("NOT over"))


def _facts() -> None:
    """Create the table of facts to write to GitHub."""
    op.create_table(
        "github_facts",
        sa.Column("fact_id", sa.String(160), primary_key=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("root_job_id", sa.String(80), nullable=False),
        sa.Column("github", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("subject", sa.String(120), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("done_at", sa.Double),
        sa.Column("github_id", sa.String(40)),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
    )
    op.create_index("github_facts_open", "github_facts", ["next_at"], **only("state = 'open'"))
    op.create_index("github_facts_failed", "github_facts", ["github", "number"], **only("state = 'failed'"))
    op.create_index("github_facts_to_push", "github_facts", ["next_at"], **only("state = 'push'"))
    op.create_index("github_facts_published", "github_facts", ["root_job_id"], **only("kind = 'publish'"))
    op.create_index("github_facts_by_root", "github_facts", ["root_job_id"])
    op.create_table(
        "github_published",
        sa.Column("repo", sa.String(200), primary_key=True),
        sa.Column("since", sa.Double, nullable=False),
    )


def _comments() -> None:
    """Create the table of comments that held a command."""
    op.create_table(
        "github_comments",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("github", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("job_id", sa.String(80)),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("acted_at", sa.Double),
    )
    op.create_index("github_comments_by_thread", "github_comments", ["github", "number", "at"])
    op.create_index("github_comments_open", "github_comments", ["at"], **only("state = 'taken'"))


def _reading() -> None:
    """Create the tables of how far comments were read, GitHub's cached answers, and webhook deliveries."""
    op.create_table(
        "github_repos",
        sa.Column("github", sa.String(200), primary_key=True),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("polled_at", sa.Double, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.Column("wanted_at", sa.Double, nullable=False),
        sa.Column("default_branch", sa.String(255), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
    )
    op.create_table(
        "github_pages",
        sa.Column("url", sa.String(600), primary_key=True),
        sa.Column("etag", sa.Text),
        sa.Column("last_modified", sa.Text),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("more", sa.Text),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_table(
        "github_deliveries",
        sa.Column("delivery_id", sa.String(100), primary_key=True),
        sa.Column("event", sa.String(60), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_index("github_deliveries_by_time", "github_deliveries", ["at"])


def _account() -> None:
    """Create the table of the GitHub account and its quota."""
    op.create_table(
        "github_requests",
        sa.Column("hour", sa.Integer, primary_key=True),
        sa.Column("github", sa.String(200), primary_key=True),
        sa.Column("counted", sa.Integer, nullable=False),
        sa.Column("free", sa.Integer, nullable=False),
        sa.Column("written", sa.Integer, nullable=False),
    )
    op.create_table(
        "github_account",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("login", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("quota", sa.Integer),
        sa.Column("remaining", sa.Integer),
        sa.Column("reset_at", sa.Double),
        sa.Column("blocked_until", sa.Double),
        sa.Column("failing_since", sa.Double),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("wrote_at", sa.Double, nullable=False),
        sa.Column("checks_refused", sa.Boolean, nullable=False),
    )
