"""Merging the work of legs for those that depend on it (rulings I1, I2, I5)."""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from activities.git.branches import contains
from activities.git.command import GitError, all_printable, git, paths
from activities.git.locks import clear_stale_locks
from activities.git.worktrees import Worktree, commit_of, mark_base
from workflows.model.errors import RefusedError

_LEG = re.compile(r"service/job-[0-9a-v]{12}(?:\.\d+)?-(?P<leg>.+?)(?:-attempt\d+)?")


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

    @property
    def in_legs(self) -> str:
        """The same by the legs' own names (spec: legs not file-disjoint)."""
        others = " and ".join(map(_leg, self.against)) or "what is on the task's branch already"
        return f"leg {_leg(self.branch)} conflicts with {others} in {', '.join(self.files)}"

    @property
    def facts(self) -> dict[str, JsonValue]:
        """The same for programs: what the ways out of it are made from."""
        return {"branch": self.branch, "against": list(self.against), "files": list(self.files)}


def _leg(branch: str) -> str:
    match = _LEG.fullmatch(branch)
    return f"{match['leg']} ({branch})" if match else branch


def merge(worktree: Worktree, branches: Sequence[str]) -> Worktree:
    """Merge one after another; the result is what the job starts from.

    Does nothing once the recorded base has it all: a job may be running in the worktree by then.
    """
    wanted = [commit_of(worktree.path, branch) for branch in branches]  # all of them, before anything is merged
    if all(contains(worktree.path, worktree.base, commit) for commit in wanted):
        return worktree
    clear_stale_locks(worktree.path, worktree.branch)
    # A killed merge leaves half of its files behind; no job has worked here yet.
    git(worktree.path, "reset", "--quiet", "--hard")
    git(worktree.path, "clean", "--quiet", "-ffd")
    for done, branch in enumerate(branches):
        _merge_one(worktree, branch, branches[:done])
    return mark_base(worktree.path)


def _merge_one(worktree: Worktree, branch: str, earlier: Sequence[str]) -> None:
    commit = commit_of(worktree.path, branch)
    options = ("--quiet", "--ff", "--no-edit", "--no-verify", "--no-stat", "--no-autostash")
    try:
        git(worktree.path, "merge", *options, "-m", f"Merge {branch}", commit)
    except GitError:
        unmerged = paths(git(worktree.path, "ls-files", "--unmerged", "-z"))
        files = {entry.partition("\t")[2] for entry in unmerged}
        git(worktree.path, "reset", "--quiet", "--hard")
        if not files:
            raise
        against = tuple(other for other in earlier if _touched_by(worktree, other) & files)
        raise MergeConflict(branch, against, all_printable(files)) from None


def _touched_by(worktree: Worktree, branch: str) -> set[str]:
    since = f"{worktree.base}...{commit_of(worktree.path, branch)}"
    return set(paths(git(worktree.path, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", since)))
