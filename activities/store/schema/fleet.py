"""Tables of the fleet: its hosts, the cluster they form, and the invitations to join it. Times are the database's."""

from sqlalchemy import CheckConstraint, Column, Double, Index, Integer, String, Table

from activities.store.schema.columns import CleanText, Names, metadata, of

hosts = Table(
    "hosts",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("version", String(64), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("stopped_at", Double),
    Column("held", CleanText, nullable=False, server_default=""),
    Column("machine", String(64), nullable=False, server_default=""),
    Column("key", String(64), nullable=False, server_default=""),
    Column("labels", Names, nullable=False, server_default="[]"),
    Column("address", CleanText, nullable=False, server_default=""),
    Column("taken", Integer, nullable=False, server_default="0"),
    Column("draining_at", Double),
    Column("lost_at", Double),
    Column("keys", Names, nullable=False, server_default="[]"),
    Column("placed", Integer, nullable=False, server_default="0"),
    Column("pool", CleanText, nullable=False, server_default=""),
    Column("lot", Double, nullable=False, server_default="0"),
    Index("hosts_by_pool", "pool", "lot"),
)
"""Each host's worker refreshes its row every few seconds. `machine` identifies the home on its machine, `key` is the
fingerprint of the key it seals with, `keys` is unused (0.2.0 had it), `address` the URL of its bridge for other hosts,
`placed` the number of attempts that were ever placed on it. `pool` is the key of the hosts with equal labels and equal
room for attempts, and `lot` its place in that pool, a random number from 0 to 1. By both, hosts are drawn for an
attempt.
"""

placements = Table(
    "placements",
    metadata,
    Column("job_id", String(80), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("host", String(200), nullable=False),
    Column("repo", of("repo"), nullable=False),
    Column("at", Double, nullable=False),
    Column("require", Names, nullable=False, server_default="[]"),
    Index("placements_by_host", "host", "at"),
    Index("placements_by_repo", "repo", "host"),
)
"""The host that each attempt was placed on last, and the labels that it required (ruling Q4)."""

cluster = Table(
    "cluster",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False),
    Column("namespace", String(255), nullable=False),
    Column("oldest_release", String(64), nullable=False),
    CheckConstraint("id = 1", name="cluster_has_one_row"),
)
"""The first worker writes the table's one row: what all hosts must have in common."""

invites = Table(
    "invites",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("used_at", Double),
    Column("used_by", String(200), nullable=False, server_default=""),
)
"""Invitations to join, by the digest of their token."""

seal_keys = Table(
    "seal_keys",
    metadata,
    Column("fingerprint", String(64), primary_key=True),
    Column("wrapped", String(200), nullable=False),
    Column("under", String(64), nullable=False),
    Column("offered_at", Double, nullable=False),
    Column("seals_since", Double),
    Column("left_at", Double),
    Column("removed_at", Double),
)
"""Unused. It stays for hosts of 0.2.0 in a fleet that is being upgraded: they replaced the seal key by it."""

tokens = Table(
    "tokens",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("scope", String(20), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("made_at", Double, nullable=False),
)
"""People's tokens, by their digests, where several hosts share the store."""
