"""What operators do to legs' branches, as events (rulings B4, I5). Operations tell them, not the tree."""

from enum import StrEnum

from workflows.model.payload import Payload


class BranchEventKind(StrEnum):
    """What happened to a branch."""

    MERGED = "branch_merged"
    DROPPED = "branch_dropped"


class BranchEvent(Payload):
    """Whose word, which branch, where it pointed, and the task branch it was merged into, or not."""

    actor: str
    branch: str
    head_sha: str
    task_branch: str
    merged: bool
