"""Jobs are searched and listed by time in one index, without a look at each row."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.drop_index("jobs_by_time", "jobs")
    op.create_index("jobs_by_time", "jobs", ["queued_at", "job_id", "root_job_id", "agent", "delegation_id"])
