"""The judgement of ended programs: a valid result, a result to repair, or a failure with its evidence."""

from collections.abc import Iterable
from dataclasses import dataclass

from activities.agents.faults import Blocker, BlockerKind
from activities.host.attempt import with_way_out
from activities.jobs.execution import Executed
from activities.jobs.workspace import Evidence
from activities.runs.supervisor import EndKind
from workflows.contract.models import Action, AutonomyPolicy, Decision
from workflows.contract.parse import Accepted, Rejected
from workflows.model.jobs import JobRun
from workflows.model.states import JobState
from workflows.text import durations


@dataclass(frozen=True)
class Failure:
    """A failure of the program itself, which is never repaired (ruling A5)."""

    reason: str
    state: JobState = JobState.FAILED
    first: str = ""
    """Command that a person has to type before another attempt can succeed."""


Settled = Accepted | Rejected | Failure
"""Judgements that a job can end with."""

Judgement = Settled | Blocker


def judge(executed: Executed, timeout_seconds: float | None, *, on_order: bool = False) -> Judgement:
    """Judge one program run by its adapter's report, not by its exit code alone.

    A run that was stopped on order is cancelled, whatever its output.
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


def check_evidence(settled: Settled, run: JobRun, runs: Iterable[Executed], evidence: Evidence) -> Settled:
    """Fail a job that claims to have implemented, wrote nothing, and was refused its writes (ruling P5)."""
    refused = [tool for executed in runs for tool in executed.report.refused]
    if not refused or not isinstance(settled, Accepted) or evidence.head_sha or evidence.problem:
        return settled
    result = settled.result
    if run.assignment.action is not Action.IMPLEMENT or result.decision is not Decision.IMPLEMENTED:
        return settled
    if result.delegations or result.human_questions:
        return settled
    return Failure(_refusal(run, refused))


def _refusal(run: JobRun, tools: list[str]) -> str:
    worker = run.assignment.worker
    calls = "a tool call" if len(tools) == 1 else f"{len(tools)} tool calls"
    says = (
        f"its program was refused {calls} ({', '.join(dict.fromkeys(tools))}) by the policy "
        f'"{worker.autonomy_policy}" and wrote nothing, but its result says implemented'
    )
    if worker.autonomy_policy is AutonomyPolicy.DANGER_FULL_ACCESS:
        return with_way_out(says, "service help boxes")
    says += "; another attempt has the same policy, so give the work to an agent that may do more"
    agent = f"--runtime {worker.runtime} --capabilities implement --autonomy danger-full-access --repo {run.repo}"
    return with_way_out(says, f"service agent add NAME {agent}")


def as_failure(blocker: Blocker) -> Failure:
    """Return a blocker as the job's end: blocked if a person must act first, with the command to type."""
    reason = with_way_out(blocker.message, blocker.hint)
    match blocker.kind:
        case BlockerKind.LOGIN | BlockerKind.PROGRAM:
            return Failure(reason, JobState.BLOCKED, first=blocker.hint)
        case BlockerKind.RATE_LIMIT | BlockerKind.NETWORK | BlockerKind.KILLED:
            return Failure(reason)
