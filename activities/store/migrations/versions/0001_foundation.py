"""Repositories, agents, tasks, jobs, events, runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _registries()
    _tasks()
    _jobs()
    _events()
    _runs()


def _registries() -> None:
    op.create_table(
        "repos",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
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
        sa.Column("added_at", sa.Double, nullable=False),
    )
    op.create_table(
        "agent_repos",
        sa.Column("agent", sa.String(64), sa.ForeignKey("agents.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("repo", sa.String(200), sa.ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
    )


def _tasks() -> None:
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
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
    )


def _jobs() -> None:
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
        sa.Column("decision", sa.String(20)),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("model", sa.String(200)),
        sa.Column("effort", sa.String(64)),
        sa.Column("phase", sa.String(200)),
        sa.Column("branch", sa.Text),
        sa.Column("head_sha", sa.String(64)),
        sa.Column("pull_request", sa.Integer),
        sa.Column("result_digest", sa.String(64)),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("price_assumed", sa.Boolean, nullable=False),
        sa.Column("queued_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("preflight_failed", sa.Text),
    )
    op.create_index("jobs_by_root", "jobs", ["root_job_id"])
    op.create_index("jobs_by_time", "jobs", ["queued_at"])
    op.create_index("jobs_by_state", "jobs", ["state", "queued_at"])


def _events() -> None:
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
    op.create_index("events_by_root", "events", ["root_job_id", "seq"])
    op.create_index("events_by_kind", "events", ["kind"])


def _runs() -> None:
    op.create_table(
        "trees",
        sa.Column("root_job_id", sa.String(80), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("start", sa.JSON, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("state", sa.JSON),
    )
    op.create_table(
        "runs",
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
    )
