"""The covering index of spend, with the requests: what it covered it covers still (ruling S6)."""

from alembic import op

revision = "0019"
down_revision = "0018"

SPENT = "agent repo model ended_at started_at queued_at input_tokens output_tokens cost_usd price_assumed requests"


def upgrade() -> None:
    op.drop_index("jobs_by_spender", "jobs")
    op.create_index("jobs_by_spender", "jobs", SPENT.split())
