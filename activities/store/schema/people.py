"""Tables of rounds, notifications, reviews, and idempotency keys of calls."""

from sqlalchemy import JSON, Column, Double, ForeignKey, Index, Integer, String, Table

from activities.store.schema.columns import CleanText, metadata, of, only

rounds = Table(
    "rounds",
    metadata,
    Column("round_id", String(100), primary_key=True),
    Column("root_job_id", String(80), nullable=False),
    Column("coordinator_id", String(80), nullable=False),
    Column("job_id", String(80), nullable=False),
    Column("task_id", String(80), nullable=False),
    Column("repo", of("repo"), nullable=False),
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
    Column("closed", CleanText, nullable=False),
    Column("said", CleanText, nullable=False),
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
    Column("message", CleanText, nullable=False),
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
    Column("error", CleanText, nullable=False),
    Index("deliveries_open", "notification_id", **only("delivered_at IS NULL")),
)

reviews = Table(
    "reviews",
    metadata,
    Column("review_id", String(80), primary_key=True),
    Column("repo", of("repo")),
    Column("pull_request", Integer, nullable=False),
    Column("head_sha", String(64), nullable=False),
    Column("workflow", of("label"), nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("verdict", CleanText),
    Index("reviews_by_pull_request", "pull_request"),
)

review_notes = Table(
    "review_notes",
    metadata,
    Column("review_id", String(80), ForeignKey("reviews.review_id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("author", of("author"), nullable=False),
    Column("text", CleanText, nullable=False),
    Column("at", Double, nullable=False),
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
