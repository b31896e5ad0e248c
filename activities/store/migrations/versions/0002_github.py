"""What is known of GitHub: trees bound to pull requests and issues, what is to be written there, what was read."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def only(condition: str) -> dict[str, Any]:
    """Options of an index of few rows of a table."""
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


def upgrade() -> None:
    _belonging()
    _threads()
    _facts()
    _comments()
    _reading()
    _account()


def _belonging() -> None:
    """What jobs and pipelines' runs belong to, names of repositories there, and the branches a job was given to see."""
    op.add_column("repos", sa.Column("github", sa.String(200), nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("issue", sa.Integer))
    for number in ("pull_request", "issue"):
        op.create_index(f"jobs_by_{number}", "jobs", [number, "queued_at"], **only(f"{number} IS NOT NULL"))
        op.add_column("pipeline_runs", sa.Column(number, sa.Integer))
    op.add_column("runs", sa.Column("given", sa.JSON))


def _threads() -> None:
    """Trees and where they are discussed."""
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
    """What is to be written."""
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
    """Comments that held a command."""
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
    """How far comments were read, answers that need not be sent again, webhook deliveries."""
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
    """Who we are there, and the quota."""
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
