"""The branches a reader checks stay where they are: one that it moved is put back when it ends (ruling I2).

Where they were is kept in references of the worktree itself, so it is known after a crash and gone with the worktree.
"""

from collections.abc import Sequence

from activities.git.branches import commit, tip
from activities.git.command import git
from activities.git.worktrees import Worktree

CHECKED = "refs/worktree/service-checked"


def remember(worktree: Worktree, branches: Sequence[str]) -> None:
    """Where they are before anything runs in the worktree."""
    for number, branch in enumerate(branches):
        if there := tip(worktree.path, branch):
            git(worktree.path, "update-ref", f"{CHECKED}/{number}", there)


def put_back(worktree: Worktree, branches: Sequence[str]) -> tuple[str, ...]:
    """The branches that had moved. One that is gone was merged or dropped by an operator, or counts by its commit."""
    moved = []
    for number, branch in enumerate(branches):
        was, now = commit(worktree.path, f"{CHECKED}/{number}"), tip(worktree.path, branch)
        if was is not None and now not in (None, was):
            git(worktree.path, "update-ref", f"refs/heads/{branch}", was)
            moved.append(branch)
    return tuple(moved)
