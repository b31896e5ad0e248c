"""Tables of repositories and their checkouts, agents, and the repositories of agents."""

from sqlalchemy import JSON, Column, Double, ForeignKey, String, Table

from activities.store.schema.columns import CleanText, Names, Path, metadata, of

repos = Table(
    "repos",
    metadata,
    Column("name", of("repo"), primary_key=True),
    Column("remote", Path, nullable=False, server_default=""),
    Column("default_branch", Path, nullable=False, server_default=""),
    Column("refs", String(40), nullable=False, server_default=""),
    Column("github", String(200), nullable=False, server_default=""),
    Column("added_at", Double, nullable=False),
    Column("require", Names, nullable=False, server_default="[]"),
    Column("prefer", Names, nullable=False, server_default="[]"),
)
"""`refs` is the namespace in which the hub accepts the service's work."""

checkouts = Table(
    "checkouts",
    metadata,
    Column("repo", of("repo"), ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
    Column("host", String(200), primary_key=True),
    Column("path", Path, nullable=False),
    Column("added_at", Double, nullable=False),
)
"""The registered checkouts of each host."""

agents = Table(
    "agents",
    metadata,
    Column("name", of("agent"), primary_key=True),
    Column("runtime", String(32), nullable=False),
    Column("command", JSON, nullable=False),
    Column("model", of("model")),
    Column("effort", of("effort")),
    Column("template", CleanText),
    Column("role", CleanText),
    Column("capabilities", JSON, nullable=False),
    Column("autonomy_policy", String(32), nullable=False),
    Column("session", String(16), nullable=False, server_default="fresh"),
    Column("added_at", Double, nullable=False),
    Column("require", Names, nullable=False, server_default="[]"),
    Column("prefer", Names, nullable=False, server_default="[]"),
)

agent_repos = Table(
    "agent_repos",
    metadata,
    Column("agent", of("agent"), ForeignKey("agents.name", ondelete="CASCADE"), primary_key=True),
    Column("repo", of("repo"), ForeignKey("repos.name", ondelete="CASCADE"), primary_key=True),
)
