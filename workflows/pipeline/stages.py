"""Stages: an agent stage's prompt and the outcome of its tree, and a shell stage's input for its host (ruling K1)."""

from collections.abc import Mapping

from workflows.contract.models import Decision
from workflows.model.long_texts import Text
from workflows.model.states import TaskState
from workflows.model.wire import Wire
from workflows.pipeline.plan import StageOutcome, StageState
from workflows.pipeline.rows import StageRecord
from workflows.policy.decisions import report
from workflows.text.quoted_data import Fences, inline, write_fenced
from workflows.tree.commands import CloseTree

_INTRODUCTION = """\
# Payload

This run was started with the values below, which came from outside."""


def stage_prompt(prompt: str, payload: Mapping[str, str]) -> str:
    """Return the prompt of the stage's agent."""
    if not payload:
        return prompt
    seed = "\0".join([prompt, *payload, *payload.values()])
    return write_fenced(seed, lambda fences: _whole(prompt, payload, fences))


def _whole(prompt: str, payload: Mapping[str, str], fences: Fences) -> str:
    values = (f"{inline(key)}:\n\n{fences.block(value, 'who started the run')}" for key, value in payload.items())
    return "\n\n".join([prompt.strip(), f"{_INTRODUCTION} {fences.meaning()}", *values])


class Script(Wire):
    """The command and environment of a shell stage."""

    command: tuple[str, ...]
    env: dict[str, str] = {}


class StageRun(Wire):
    """One attempt of a shell stage: everything that its host needs to know."""

    run_id: str
    job_id: str
    """`<run>.<n>`: the id of its rows and processes."""
    pipeline: str
    stage_id: str
    attempt: int
    repo: str
    script: Text
    payload: Text
    timeout_seconds: float | None = None
    base: str = ""
    pull_request: int | None = None
    issue: int | None = None
    branch_deps: tuple[str, ...] = ()
    """Branches whose work the stage must see: those implemented by the stages it needs."""
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that the stage requires or prefers of its host (ruling Q4)."""
    row: StageRecord
    """The stage's row while this attempt runs."""

    @property
    def attempt_name(self) -> str:
        """This attempt's name, unique among all runs."""
        return f"{self.job_id} attempt {self.attempt}"


def outcome_of(tree: CloseTree, success: tuple[Decision, ...]) -> StageOutcome:
    """Return the stage's outcome from its tree. A done task succeeds if the stage accepts its decision and no bound cut
    it short; the decision `failed` fails the stage.
    """
    ended = StageOutcome(
        state=StageState.SUCCEEDED,
        decision=tree.decision,
        summary=tree.summary,
        usage=tree.usage,
        cost_usd=tree.cost_usd,
        price_assumed=tree.price_assumed,
        branches=tree.branches,
    )
    if tree.aborted:  # a person wants no more of it: neither another attempt nor what comes after it
        return ended.model_copy(update={"state": StageState.CANCELLED, "reason": tree.aborted})
    match tree.task_state:
        case TaskState.DONE if tree.cut_short:  # what comes after it would build on a part of its work
            update = {"state": StageState.FAILED, "reason": tree.reason, "cut_short": True}
            return ended.model_copy(update=update)
        case TaskState.DONE if tree.decision in success:
            return ended
        case TaskState.DONE:
            takes = ", ".join(decision.words for decision in success)
            reason = f"it {report(tree.decision)}; a success is {takes}"
            return ended.model_copy(update={"state": StageState.FAILED, "reason": reason})
        case TaskState.CANCELLED:
            return ended.model_copy(update={"state": StageState.CANCELLED, "reason": tree.reason})
        case TaskState.BLOCKED if tree.decision is Decision.FAILED:  # a task has no failed state (ruling E7)
            return ended.model_copy(update={"state": StageState.FAILED, "reason": tree.reason})
        case TaskState.BLOCKED | TaskState.OPEN | TaskState.AWAITING_HUMAN:
            return ended.model_copy(update={"state": StageState.BLOCKED, "reason": tree.reason})
