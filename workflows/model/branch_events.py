"""What operators do to legs' branches, as events (rulings B4, I5). Operations tell them, not the tree."""

from enum import StrEnum

from workflows.model.payload import Payload


class BranchEventKind(StrEnum):
    """What happened to a branch."""

    MERGED = "branch_merged"
    DROPPED = "branch_dropped"
    LINE_CONFLICT = "line_conflict"
    """It is not on the line of its chain (ruling O3)."""


class BranchEvent(Payload):
    """Who ordered it, which branch, the commit it pointed at, the task branch, and whether it was merged there."""

    actor: str
    branch: str
    head_sha: str
    task_branch: str
    merged: bool
    anyway: str = ""
    """The objection in spite of which it was merged."""
    leg: str = ""
    against: list[str] = []
    """The branches on the line that touch the same files."""
    files: list[str] = []
