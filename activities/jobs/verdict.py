"""What an ended program means: a valid result, a result to be repaired, or a failure with its evidence."""

from dataclasses import dataclass

from activities.jobs.execution import Executed
from activities.runs.supervisor import EndKind
from workflows.contract import durations
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.tree.jobs import JobState


@dataclass(frozen=True)
class Failure:
    """The program itself failed; that is never repaired (ruling A5)."""

    reason: str
    state: JobState = JobState.FAILED


Verdict = Accepted | Rejected | Failure


def judge(executed: Executed, timeout_seconds: float | None, *, after_repair: bool = False) -> Verdict:
    """The verdict on one program run."""
    end = executed.end
    match end.kind:
        case EndKind.EXITED if end.exit_code == 0:
            return read_result(executed.report.text, after_repair=after_repair)
        case EndKind.EXITED:
            how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
            return Failure(f"the agent's program ended with {how}{_last_line(executed.stderr)}")
        case EndKind.TIMED_OUT:
            limit = durations.format_duration(timeout_seconds or 0)
            return Failure(f"the agent was stopped after its timeout of {limit}")
        case EndKind.CANCELLED:
            return Failure("stopped on order", JobState.CANCELLED)
        case EndKind.NOT_STARTED:
            return Failure(f"the agent's program could not be started: {end.error}")
        case EndKind.UNKNOWN:
            return Failure("nobody saw how the agent's run ended (was the machine restarted?); what it left is kept")


def _last_line(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return f": {lines[-1][:300]}" if lines else ""
