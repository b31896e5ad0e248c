"""Tables of hosts' work for jobs and stages: claims, attempts, deferred tries, sessions of programs."""

from sqlalchemy import JSON, BigInteger, Column, Double, Index, Integer, String, Table

from activities.store.schema.columns import TOKENS, CleanText, Path, metadata, of

claims = Table(
    "claims",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("offer", Integer, nullable=False),
    Column("begun_at", Double),
    Column("stop_at", Double),
)
"""`stop_at` is the time of the order to stop an attempt that had begun; its host reads the order (ruling Q7)."""

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("host", String(200), nullable=False),
    Column("run_dir", Path, nullable=False),
    Column("worktree", Path),
    Column("branch", CleanText),
    Column("base_sha", String(64)),
    Column("given", JSON(none_as_null=True)),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", JSON),
    Column("payload", JSON),
    Column("diagnostics", JSON),
    Column("seals", String(200)),
)
"""`seals` proves that a holder of the seal key wrote outcome, payload and diagnostics (ruling N4)."""

moves = Table(
    "moves",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("host", String(200), nullable=False),
    Column("reason", CleanText, nullable=False),
    Column("at", Double, nullable=False),
    Column("kept", String(400)),
    Index("moves_by_host", "host", "kept"),
)
"""Begun attempts that were taken from a lost host. `kept` is the ref with the lost host's work on the attempt; empty if
there is no work; NULL until the host has come back and checked.
"""

stalls = Table(
    "stalls",
    metadata,
    Column("what", String(255), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("since", Double, nullable=False),
)
"""Jobs, stages and workflows, by their ids, that had stood still for a minute at a worker's last check (ruling B3)."""

deferrals = Table(
    "deferrals",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("runtime", String(32), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("message", CleanText, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("input_tokens", TOKENS, nullable=False),
    Column("output_tokens", TOKENS, nullable=False),
    Column("requests", TOKENS),
)

agent_sessions = Table(
    "agent_sessions",
    metadata,
    Column("runtime", String(32), primary_key=True),
    Column("session", of("session"), primary_key=True),
    Column("turn", String(120), nullable=False),
    Column("input_before", BigInteger, nullable=False),
    Column("output_before", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
)
