"""The job state of each decision (ruling A11), and how decisions are shown beside states."""

from collections.abc import Iterable
from enum import StrEnum

from workflows.contract.models import Decision
from workflows.model.jobs import JobOutcome
from workflows.model.rounds import RoundEnd
from workflows.model.rows import JobRecord, RoundRecord
from workflows.model.states import JobState

_REPORTS = {
    Decision.IMPLEMENTED: "reports the work as implemented",
    Decision.APPROVED: "approves the result",
    Decision.CHANGES_REQUESTED: "asks for changes",
    Decision.SKIPPED: "reports that there was nothing to do",
    Decision.BLOCKED: "reports that it is blocked",
    Decision.FAILED: "reports that it failed",
}


def decision_label(state: StrEnum, decision: Decision | None) -> str:
    """Return the decision in words, or "" if the state beside it has the same word (blocked, failed)."""
    return decision.words if decision is not None and decision.value != state.value else ""


def report(decision: Decision | None) -> str:
    """Return what an agent with this decision does, to follow the agent's name."""
    return _REPORTS[decision] if decision else "reports nothing more to do"


def state_label(job: JobRecord, rounds: Iterable[RoundRecord]) -> str:
    """Return a job's state for people. A job that is blocked because it asked is shown as `asks you`, then
    `answered`.
    """
    if job.state is JobState.BLOCKED:
        for asked in rounds:
            if any(question.job_id == job.job_id for question in asked.questions):
                if asked.end is None:
                    return "asks you"
                if asked.end is RoundEnd.ANSWERED:
                    return "answered"
    return job.state.value


def state_of(decision: Decision) -> JobState:
    """Return the state that a decision gives a job: blocked, failed, or for all others, skipped included, succeeded
    (ruling A11).
    """
    match decision:
        case Decision.BLOCKED:
            return JobState.BLOCKED
        case Decision.FAILED:
            return JobState.FAILED
        case Decision.APPROVED | Decision.CHANGES_REQUESTED | Decision.IMPLEMENTED | Decision.SKIPPED:
            return JobState.SUCCEEDED


def ended_as(outcome: JobOutcome) -> JobState:
    """Return the end state of an attempt. A decision `blocked` or `failed` determines it too (ruling A11)."""
    if outcome.state is JobState.SUCCEEDED:
        return state_of(outcome.decision) if outcome.decision else JobState.SUCCEEDED
    failing = {JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED}
    return outcome.state if outcome.state in failing else JobState.FAILED
