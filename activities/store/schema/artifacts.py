"""Tables of content by digest, and of the hosts that have kept secrets, for stores that several hosts share."""

import sqlalchemy
from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, LargeBinary, Table

from activities.store.schema.columns import Path, String, metadata

artifacts = Table(
    "artifacts",
    metadata,
    Column("digest", sqlalchemy.String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("body", LargeBinary),
    Column("used_at", Double, nullable=False, index=True),
)
"""`body` is the first part of the content; NULL in rows of a release that kept content in object stores."""

artifact_parts = Table(
    "artifact_parts",
    metadata,
    Column("digest", sqlalchemy.String(64), ForeignKey("artifacts.digest", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""The further parts of content that doesn't fit one row."""

kept_secrets = Table(
    "kept_secrets",
    metadata,
    Column("name", sqlalchemy.String(20), primary_key=True),
    Column("host", String(200), primary_key=True),
    Column("path", Path, nullable=False),
)
"""The name of a secret's placeholder, and the file on a host that has the secret."""
