"""Which state an agent's decision puts its job in (ruling A11), and when it is worth saying beside the state."""

from enum import StrEnum

from workflows.contract.models import Decision
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState


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


def ended_as(outcome: JobOutcome) -> JobState:
    """An attempt that ran ended in one of four ways; a decision to block or fail is one of them (ruling A11)."""
    if outcome.state is JobState.SUCCEEDED:
        return state_of(outcome.decision) if outcome.decision else JobState.SUCCEEDED
    failing = {JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED}
    return outcome.state if outcome.state in failing else JobState.FAILED
