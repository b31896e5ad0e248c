"""In-session reviews: what somebody says of a pull request, kept apart from jobs and tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
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
