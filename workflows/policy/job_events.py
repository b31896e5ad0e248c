"""Events of jobs in a tree's log (ruling B7); other events are recorded where they are decided."""

from workflows.model.event_kinds import EventKind
from workflows.model.event_payloads import Data
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation, JobState
from workflows.policy.decisions import decided
from workflows.policy.prices import dollars


def of_job(job: JobRecord) -> tuple[EventKind, str, str, Data]:
    """Return the event of a job's new state: its kind, its job, a line for people, its payload."""
    data: Data
    why = f": {job.reason}" if job.reason else ""
    match job.state:
        case JobState.QUEUED:
            data = {"leg": job.delegation_id, "agent": job.agent, "action": job.action.value, "attempt": job.attempt}
            return EventKind.JOB_QUEUED, job.job_id, f"{_name(job)} is queued{why}", data
        case JobState.RUNNING:
            data = {"attempt": job.attempt, "runtime": job.runtime, "model": job.model}
            return EventKind.JOB_BEGUN, job.job_id, f"{_name(job)} has begun", data
        case _:
            word = f", {decision}" if (decision := decided(job.state, job.decision)) else ""
            cost = dollars(job.cost_usd, assumed=job.price_assumed)
            spent = f"; {job.usage.total:,} tokens, {cost}" if job.usage.total else ""
            data = {
                "attempt": job.attempt,
                "state": job.state.value,
                "decision": job.decision.value if job.decision else None,
                "tokens": job.usage.total,
                "cost_usd": job.cost_usd,
                "cost_assumed": job.price_assumed,
            }
            return EventKind.JOB_ENDED, job.job_id, f"{_name(job)} ended {job.state}{word}{spent}{why}", data


def _name(job: JobRecord) -> str:
    """Return the job's name in log lines: its leg, or its role for its coordinator."""
    kind = "root job" if job.continuation is Continuation.NONE else f"{job.continuation} continuation"
    what = f"leg {job.delegation_id}" if job.delegation_id else kind
    attempt = f", attempt {job.attempt}" if job.attempt > 1 else ""
    return f"{what} ({job.agent} {job.action}{attempt})"
