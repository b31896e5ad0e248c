"""Tables about GitHub: trees and their threads, facts to write, comments, quota."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, Integer, String, Table, false

from activities.store.schema.columns import CleanText, metadata, of, only

REFUSED = "the account of [github] is refused"
"""Prefix of an account's `problem` that only a person can resolve."""

github_threads = Table(
    "github_threads",
    metadata,
    Column("root_job_id", String(80), primary_key=True),
    Column("repo", of("repo"), nullable=False),
    Column("github", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("bound_at", Double, nullable=False),
    Column("told_seq", Integer, nullable=False),
    Column("over", Boolean, nullable=False),
    Column("head_sha", String(64)),
    Column("closed", Boolean, nullable=False, server_default=false()),
    Index("github_threads_by_number", "github", "number"),
    Index("github_threads_open", "root_job_id", **only("NOT over")),
)
"""A thread of a tree; `told_seq` is the last event that its declared facts cover."""

github_facts = Table(
    "github_facts",
    metadata,
    Column("fact_id", String(160), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("root_job_id", String(80), nullable=False),
    Column("github", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("subject", String(120), nullable=False),
    Column("text", CleanText, nullable=False),
    Column("state", String(12), nullable=False),
    Column("host", String(200), nullable=False),
    Column("at", Double, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", CleanText, nullable=False),
    Column("done_at", Double),
    Column("github_id", String(40)),
    Column("url", CleanText, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("revision", Integer, nullable=False),
    Index("github_facts_open", "next_at", **only("state = 'open'")),
    Index("github_facts_to_push", "next_at", **only("state = 'push'")),
    Index("github_facts_published", "root_job_id", **only("kind = 'publish'")),
    Index("github_facts_failed", "github", "number", **only("state = 'failed'")),
    Index("github_facts_by_root", "root_job_id"),
)
"""The facts to write to GitHub, and their progress; the service writes nothing else to GitHub."""

github_comments = Table(
    "github_comments",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("github", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("author", String(200), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", String(12), nullable=False),
    Column("outcome", CleanText, nullable=False),
    Column("job_id", String(80)),
    Column("at", Double, nullable=False),
    Column("acted_at", Double),
    Index("github_comments_by_thread", "github", "number", "at"),
    Index("github_comments_open", "at", **only("state = 'taken'")),
)
"""Comments with a command: each acts only once, ever."""

github_repos = Table(
    "github_repos",
    metadata,
    Column("github", String(200), primary_key=True),
    Column("since", Double, nullable=False),
    Column("polled_at", Double, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("wanted_at", Double, nullable=False),
    Column("default_branch", String(255), nullable=False),
    Column("error", CleanText, nullable=False),
)
"""The progress of reading a repository's comments, and the time of the next poll."""

github_pages = Table(
    "github_pages",
    metadata,
    Column("url", String(600), primary_key=True),
    Column("etag", CleanText),
    Column("last_modified", CleanText),
    Column("data", JSON, nullable=False),
    Column("more", CleanText),
    Column("at", Double, nullable=False),
)
"""Cached answers, which GitHub need not send again unless they changed."""

github_requests = Table(
    "github_requests",
    metadata,
    Column("hour", Integer, primary_key=True),
    Column("github", String(200), primary_key=True),
    Column("counted", Integer, nullable=False),
    Column("free", Integer, nullable=False),
    Column("written", Integer, nullable=False),
)
"""Requests per hour: those that cost quota, those that were free, those that wrote."""

github_published = Table(
    "github_published",
    metadata,
    Column("repo", of("repo"), primary_key=True),
    Column("since", Double, nullable=False),
)
"""The repositories whose finished work becomes a pull request automatically, for trees that ended since `since`."""

github_account = Table(
    "github_account",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("login", String(200), nullable=False),
    Column("kind", String(12), nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("quota", Integer),
    Column("remaining", Integer),
    Column("reset_at", Double),
    Column("blocked_until", Double),
    Column("failing_since", Double),
    Column("failures", Integer, nullable=False),
    Column("problem", CleanText, nullable=False),
    Column("wrote_at", Double, nullable=False),
    Column("checks_refused", Boolean, nullable=False),
)
"""The service's account, its quota, and the time until which it is blocked."""

github_deliveries = Table(
    "github_deliveries",
    metadata,
    Column("delivery_id", String(100), primary_key=True),
    Column("event", String(60), nullable=False),
    Column("at", Double, nullable=False),
    Index("github_deliveries_by_time", "at"),
)
"""Webhook deliveries that were received."""
