"""The table of attempts gets its name: it was `runs`, a word for pipelines."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.rename_table("runs", "attempts")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER INDEX runs_pkey RENAME TO attempts_pkey")
