"""Merging the work of legs for those that depend on it (rulings I1, I2, I5)."""

from collections.abc import Sequence
from pathlib import Path

from activities.git.command import GitError, all_printable, git, paths, says_yes
from activities.git.locks import clear_stale_locks
from activities.git.worktrees import Worktree, commit_of, mark_base
from workflows.errors import RefusedError


class MergeConflict(RefusedError):  # noqa: N818
    """Two legs changed the same thing: which branches, which files. The worktree is as it was before this merge."""

    code = "merge_conflict"

    def __init__(self, branch: str, against: tuple[str, ...], files: tuple[str, ...]) -> None:
        self.branch = branch
        self.against = against
        """The branches merged earlier that touch the same files; empty when the base itself does."""
        self.files = files
        other = " and ".join(against) or "the base"
        hint = f"git merge {against[0] if against else 'the base'} (on {branch}), resolve, commit"
        super().__init__(f"merging {branch} conflicts with {other} in {', '.join(files)}", hint)


def merge(worktree: Worktree, branches: Sequence[str]) -> Worktree:
    """Merge one after another; the result is what the job starts from.

    Does nothing once the recorded base has it all: a job may be running in the worktree by then.
    """
    pending = [branch for branch in branches if not _contains(worktree.path, worktree.base, branch)]
    if not pending:
        return worktree
    clear_stale_locks(worktree.path, worktree.branch)
    _tidy(worktree.path)
    for done, branch in enumerate(branches):
        _merge_one(worktree, branch, branches[:done])
    return mark_base(worktree.path)


def is_ancestor(path: Path, older: str, newer: str) -> bool:
    """Whether `newer` contains `older`."""
    return says_yes(path, "merge-base", "--is-ancestor", older, newer)


def _contains(path: Path, base: str, branch: str) -> bool:
    return is_ancestor(path, commit_of(path, branch), base)


def _tidy(path: Path) -> None:
    """A killed merge leaves half of its files behind; no job has worked here yet."""
    git(path, "reset", "--quiet", "--hard")
    git(path, "clean", "--quiet", "-ffd")


def _merge_one(worktree: Worktree, branch: str, earlier: Sequence[str]) -> None:
    commit = commit_of(worktree.path, branch)
    options = ("--quiet", "--ff", "--no-edit", "--no-verify", "--no-stat", "--no-autostash")
    try:
        git(worktree.path, "merge", *options, "-m", f"Merge {branch}", commit)
    except GitError:
        files = _unmerged(worktree.path)
        git(worktree.path, "reset", "--quiet", "--hard")
        if not files:
            raise
        against = tuple(other for other in earlier if _touched_by(worktree, other) & files)
        raise MergeConflict(branch, against, all_printable(files)) from None


def _unmerged(path: Path) -> set[str]:
    return {entry.partition("\t")[2] for entry in paths(git(path, "ls-files", "--unmerged", "-z"))}


def _touched_by(worktree: Worktree, branch: str) -> set[str]:
    commit = commit_of(worktree.path, branch)
    since = f"{worktree.base}...{commit}"
    return set(paths(git(worktree.path, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", since)))
