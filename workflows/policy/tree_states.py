"""The state of a tree in one word for people, from its task and from whether a job of it runs."""

from enum import StrEnum

from workflows.model.states import TaskState, WaitsFor
from workflows.policy.cut_short import CUT_SHORT


class TreeState(StrEnum):
    """The state of a tree as lists show and filter it."""

    QUEUED = "queued"
    """No job of the tree runs or waits for a person."""
    RUNNING = "running"
    WAITING = "waiting"
    """A person has to answer or to decide."""
    ENDING = "ending"
    """It starts nothing more, and ends with the jobs that run."""
    BLOCKED = "blocked"
    """A retry reopens the tree."""
    FAILED = "failed"
    """It ended without a result, and nothing opens it again."""
    DONE = "done"
    CUT_SHORT = "cut_short"
    """A bound ended the tree before all planned jobs ran."""
    CANCELLED = "cancelled"

    @property
    def words(self) -> str:
        """Return the state as a label."""
        return {TreeState.WAITING: "waiting for you", TreeState.CUT_SHORT: CUT_SHORT}.get(self, self.value)


_NO_WAY_ON = (WaitsFor.DISMISS, WaitsFor.START)


def tree_state(task: TaskState, waits_for: WaitsFor, *, running: bool) -> TreeState:
    """Return the state of a tree."""
    match task:
        case TaskState.DONE:
            return TreeState.CUT_SHORT if waits_for is WaitsFor.START else TreeState.DONE
        case TaskState.AWAITING_HUMAN:
            return TreeState.WAITING
        case TaskState.OPEN | TaskState.BLOCKED if waits_for is WaitsFor.RUNS:
            return TreeState.ENDING
        case TaskState.BLOCKED | TaskState.CANCELLED if waits_for in _NO_WAY_ON:
            return TreeState.FAILED
        case TaskState.OPEN:
            return TreeState.RUNNING if running else TreeState.QUEUED
        case TaskState.BLOCKED:
            return TreeState.BLOCKED
        case TaskState.CANCELLED:
            return TreeState.CANCELLED
