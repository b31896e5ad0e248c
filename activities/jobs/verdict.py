"""What an ended program means: a valid result, a result to be repaired, or a failure with its evidence."""

from dataclasses import dataclass

from activities.agents.faults import Blocker, BlockerKind
from activities.host.attempt import with_way_out
from activities.jobs.execution import Executed
from activities.runs.supervisor import EndKind
from workflows.contract import durations
from workflows.contract.parse import Accepted, Rejected
from workflows.model.states import JobState


@dataclass(frozen=True)
class Failure:
    """The program itself failed; that is never repaired (ruling A5)."""

    reason: str
    state: JobState = JobState.FAILED
    first: str = ""
    """What to type before another attempt can go better."""


Settled = Accepted | Rejected | Failure
"""What a job can end with."""

Verdict = Settled | Blocker


def judge(executed: Executed, timeout_seconds: float | None, *, on_order: bool = False) -> Verdict:
    """The verdict on one program run: whether it went well is for its adapter to say, not for its exit code.

    One that was stopped on order is cancelled, whatever it said before.
    """
    end, fault = executed.end, executed.report.fault
    match end.kind:
        case EndKind.EXITED | EndKind.NOT_STARTED if isinstance(fault, Blocker):
            return fault
        case EndKind.CANCELLED if isinstance(fault, Blocker) and not on_order:
            return fault
        case EndKind.EXITED if fault is not None:
            return Failure(fault.message)
        case EndKind.EXITED:
            assert executed.result is not None  # read with the output
            return executed.result
        case EndKind.TIMED_OUT:
            limit = durations.format_duration(timeout_seconds or 0)
            return Failure(f"the agent was stopped after its timeout of {limit}")
        case EndKind.CANCELLED if end.error and not on_order:
            return Failure(end.error)
        case EndKind.CANCELLED:
            return Failure("stopped on order", JobState.CANCELLED)
        case EndKind.NOT_STARTED:
            return Failure(f"the agent's program could not be started: {end.error}")
        case EndKind.UNKNOWN:
            why = end.problem or "was the machine restarted?"
            return Failure(f"nobody saw how the agent's run ended ({why}); what it left is kept")


def as_failure(blocker: Blocker) -> Failure:
    """A blocker as the job's end: blocked when a person must do something first, with what to type."""
    reason = with_way_out(blocker.message, blocker.hint)
    match blocker.kind:
        case BlockerKind.LOGIN | BlockerKind.PROGRAM:
            return Failure(reason, JobState.BLOCKED, first=blocker.hint)
        case BlockerKind.RATE_LIMIT | BlockerKind.NETWORK:
            return Failure(reason)
