"""The state of a tree in one word for people, derived from its task and from whether any of its jobs runs."""

from enum import StrEnum

from workflows.model.states import TaskState, WaitsFor
from workflows.policy.cut_short import CUT_SHORT


class TreeState(StrEnum):
    """The state of a tree, as lists show it and filter by it."""

    QUEUED = "queued"
    """No job of the tree runs, and none waits for a person."""
    RUNNING = "running"
    WAITING = "waiting"
    """A person has to answer or to decide."""
    ENDING = "ending"
    """The tree starts no more jobs, and ends when its running jobs have ended."""
    BLOCKED = "blocked"
    """The tree is blocked; a retry reopens it."""
    FAILED = "failed"
    """The tree ended without a result, and cannot be reopened."""
    DONE = "done"
    CUT_SHORT = "cut_short"
    """A bound ended the tree before all planned jobs ran."""
    CANCELLED = "cancelled"

    @property
    def words(self) -> str:
        """Return the state as a label."""
        return {TreeState.WAITING: "needs you", TreeState.CUT_SHORT: CUT_SHORT}.get(self, self.value)


class TreeWork(StrEnum):
    """What became of the commits of a tree that is over."""

    NONE = ""
    """It is not over, or wrote nothing."""
    READY = "ready"
    """Nobody has merged or dropped any of it since the tree ended."""
    MERGED = "merged"
    DROPPED = "dropped"


class TreeGroup(StrEnum):
    """The groups of a list of trees, in the order in which a person wants to see them."""

    NEEDS_YOU = "needs_you"
    ACTIVE = "active"
    READY = "ready"
    """Its work can be merged."""
    ENDED = "ended"

    @property
    def words(self) -> str:
        """Return the group as a heading."""
        words = {TreeGroup.NEEDS_YOU: "Needs you", TreeGroup.ACTIVE: "Running", TreeGroup.READY: "Ready to merge"}
        return words.get(self, "Ended")


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


def tree_group(task: TaskState, waits_for: WaitsFor) -> TreeGroup:
    """Return the group of a tree. Work that nobody has merged makes an ended one `READY`."""
    match task:
        case TaskState.AWAITING_HUMAN:
            return TreeGroup.NEEDS_YOU
        case TaskState.BLOCKED if waits_for is not WaitsFor.RUNS:
            return TreeGroup.NEEDS_YOU
        case TaskState.OPEN | TaskState.BLOCKED:
            return TreeGroup.ACTIVE
        case TaskState.DONE | TaskState.CANCELLED:
            return TreeGroup.ENDED
