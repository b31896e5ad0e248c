"""What a decision makes of a job."""

from enum import StrEnum

from workflows.contract.models import Decision
from workflows.tree.jobs import JobState


def decided(state: StrEnum, decision: Decision | None) -> str:
    """The decision, where it says more than the state it stands beside: blocked and failed are both."""
    return decision.value if decision is not None and decision.value != state.value else ""


def state_of(decision: Decision) -> JobState:
    """Blocked and failed say so; every other decision is a success, skipped too (ruling A11)."""
    match decision:
        case Decision.BLOCKED:
            return JobState.BLOCKED
        case Decision.FAILED:
            return JobState.FAILED
        case Decision.APPROVED | Decision.CHANGES_REQUESTED | Decision.IMPLEMENTED | Decision.SKIPPED:
            return JobState.SUCCEEDED
