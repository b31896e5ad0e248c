"""Keeping what an agent left uncommitted (ruling I1)."""

from activities.git.branches import contains
from activities.git.command import git, line, printable, says_yes
from activities.git.locks import clear_stale_locks
from activities.git.worktree_changes import FROM_STDIN, addable
from activities.git.worktrees import Worktree, commit_of
from workflows.model.errors import RefusedError


def commit_all(worktree: Worktree, job_id: str, subject: str) -> str | None:
    """Commit everything but ignored files, and return the head; None when the job changed nothing.

    The agent's own commits stay. Call it when the run is over: it takes stale locks away. Repositories that the agent
    made inside the worktree are left out, because a commit cannot hold them.
    """
    clear_stale_locks(worktree.path, worktree.branch)
    git(worktree.path, "add", "--all", "--sparse", *FROM_STDIN, stdin=addable(worktree.path))
    if not says_yes(worktree.path, "diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"):
        message = f"{' '.join(subject.split())[:200] or job_id}\n\nService-Job: {job_id}\n"
        options = ("--quiet", "--no-verify", "--cleanup=verbatim", "--file=-")
        git(worktree.path, "commit", *options, stdin=message.encode("utf-8", "replace"))
    head = line(worktree.path, "rev-parse", "HEAD")
    _bring_home(worktree, head)
    return None if head == worktree.base else head


def _bring_home(worktree: Worktree, head: str) -> None:
    """When the agent switched to another branch, the job's own branch follows, as long as nothing gets lost."""
    if worktree.branch is None:
        return
    tip = commit_of(worktree.path, f"refs/heads/{worktree.branch}")
    if tip == head:
        return
    if not contains(worktree.path, head, tip):
        where = printable(str(worktree.path))
        raise RefusedError(
            f"the job left {where} at {head}, which does not contain its branch {worktree.branch}",
            f"git -C {where} log --oneline --graph HEAD {worktree.branch}",
        )
    git(worktree.path, "update-ref", f"refs/heads/{worktree.branch}", head, tip)
