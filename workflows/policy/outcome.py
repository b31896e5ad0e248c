"""What a decision makes of its job (ruling A11)."""

from workflows.contract.models import Decision
from workflows.tree.jobs import JobState


def state_of(decision: Decision) -> JobState:
    """Blocked and failed are what they say; everything else succeeded, `skipped` too. Ruling A11."""
    match decision:
        case Decision.BLOCKED:
            return JobState.BLOCKED
        case Decision.FAILED:
            return JobState.FAILED
        case Decision.APPROVED | Decision.CHANGES_REQUESTED | Decision.IMPLEMENTED | Decision.SKIPPED:
            return JobState.SUCCEEDED
