"""Events of operators' actions on legs' branches (rulings B4, I5). Operations record them, not the tree."""

from enum import StrEnum

from workflows.model.payload import Payload


class BranchEventKind(StrEnum):
    """The kind of a branch event."""

    MERGED = "branch_merged"
    DROPPED = "branch_dropped"
    LINE_CONFLICT = "line_conflict"
    """It conflicts with the line of its chain and is not on it (ruling O3)."""


class BranchEvent(Payload):
    """An order on a branch: its actor, the branch with its commit, the task branch, and whether it was merged there."""

    actor: str
    branch: str
    head_sha: str
    task_branch: str
    merged: bool
    anyway: str = ""
    """The objection that was overridden by the merge."""
    leg: str = ""
    against: list[str] = []
    """The branches on the line that touch the same files."""
    files: list[str] = []
