"""The columns of `service job list` and `service job reviews`, with those that yield on a narrow terminal."""

from collections.abc import Callable

from cli.drawing.looks import of_state
from cli.drawing.tables import Column

HEADINGS = (
    "JOB",
    Column("STATE", look=of_state),
    Column("ACTION", leaves=4),
    Column("AGENT", least=8, leaves=2),
    Column("REPO", least=16, leaves=6),
    Column("DECISION", leaves=5, look=of_state),
    Column("STARTED", leaves=3),
    Column("SUMMARY", least=16, plain=60),
    Column("PREFLIGHT_FAILED:", least=17, leaves=1, plain=60),
)
REVIEW_HEADINGS = (
    "REVIEW",
    Column("STATE", look=of_state),
    Column("REPO", leaves=3),
    "PR",
    Column("HEAD", leaves=4),
    Column("WORKFLOW", leaves=5, plain=30),
    Column("OPENED", leaves=2),
    Column("STATUS", least=20),
    Column("VERDICT", least=12, plain=60),
)


def link_of(dashboard: str) -> Callable[[str], str]:
    """Return a function that maps a job's id to its address: a root's tree page, or a job's own page."""

    def address(job_id: str) -> str:
        return f"{dashboard}{'jobs' if '.' in job_id else 'trees'}/{job_id}" if dashboard else ""

    return address
