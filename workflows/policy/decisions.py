"""The job state of each decision (ruling A11), and the decisions shown beside the state."""

from enum import StrEnum

from workflows.contract.models import Decision
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState


def decided(state: StrEnum, decision: Decision | None) -> str:
    """Return the decision, or an empty text if the state shown beside it has the same word (blocked, failed)."""
    return decision.value if decision is not None and decision.value != state.value else ""


def state_of(decision: Decision) -> JobState:
    """Return the state of a decision: blocked, failed, or for all others, skipped included, succeeded (ruling A11)."""
    match decision:
        case Decision.BLOCKED:
            return JobState.BLOCKED
        case Decision.FAILED:
            return JobState.FAILED
        case Decision.APPROVED | Decision.CHANGES_REQUESTED | Decision.IMPLEMENTED | Decision.SKIPPED:
            return JobState.SUCCEEDED


def ended_as(outcome: JobOutcome) -> JobState:
    """Return the end state of an attempt, which a decision to block or fail determines too (ruling A11)."""
    if outcome.state is JobState.SUCCEEDED:
        return state_of(outcome.decision) if outcome.decision else JobState.SUCCEEDED
    failing = {JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED}
    return outcome.state if outcome.state in failing else JobState.FAILED
