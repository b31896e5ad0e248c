"""What a decision makes of a job."""

from workflows.contract.models import Decision
from workflows.tree.jobs import JobState


def state_of(decision: Decision) -> JobState:
    """Blocked and failed say so; every other decision is a success, skipped too (ruling A11)."""
    match decision:
        case Decision.BLOCKED:
            return JobState.BLOCKED
        case Decision.FAILED:
            return JobState.FAILED
        case Decision.APPROVED | Decision.CHANGES_REQUESTED | Decision.IMPLEMENTED | Decision.SKIPPED:
            return JobState.SUCCEEDED
