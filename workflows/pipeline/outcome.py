"""The outcome of an agent stage, derived from its tree's end (ruling K1; spec: rules for skipped, 5)."""

from workflows.contract.models import Decision
from workflows.model.states import TaskState
from workflows.pipeline.plan import StageOutcome, StageState
from workflows.tree.commands import CloseTree


def outcome_of(tree: CloseTree, success: tuple[Decision, ...]) -> StageOutcome:
    """Return the stage's outcome. A done task succeeds if the stage accepts its decision; `failed` fails the stage."""
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
        case TaskState.DONE if tree.decision in success:
            return ended
        case TaskState.DONE:
            takes = ", ".join(success)
            reason = f"it decided {tree.decision or 'nothing'}; a success is {takes}"
            return ended.model_copy(update={"state": StageState.FAILED, "reason": reason})
        case TaskState.CANCELLED:
            return ended.model_copy(update={"state": StageState.CANCELLED, "reason": tree.reason})
        case TaskState.BLOCKED if tree.decision is Decision.FAILED:  # a task has no failed state (ruling E7)
            return ended.model_copy(update={"state": StageState.FAILED, "reason": tree.reason})
        case TaskState.BLOCKED | TaskState.OPEN | TaskState.AWAITING_HUMAN:
            return ended.model_copy(update={"state": StageState.BLOCKED, "reason": tree.reason})
