"""Merge the work of legs for jobs that depend on it (rulings I1, I2, I5)."""

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from activities.git.command import all_printable
from activities.git.git_branches import changes, contains, merge_base, move, tip
from activities.git.locks import clear_ref_lock
from activities.git.merges.commits import CommitConflict, commit_merge, merged_tree
from activities.git.registered_repository import common_directory
from activities.git.work_folder.checkout import fill_all
from activities.git.work_folder.service_git_dir import record_of, side_of
from activities.git.work_folder.worktrees import Worktree, commit_of, start_from
from workflows.model.errors import RefusedError

_LEG = re.compile(r"service/job-[0-9a-v]{12}(?:\.\d+)?-(?P<leg>.+?)(?:-attempt\d+)?")


class MergeConflict(RefusedError):  # noqa: N818
    """Two legs' changes conflict: the branches and files. The work folder is unchanged."""

    code = "merge_conflict"

    def __init__(self, branch: str, against: tuple[str, ...], files: tuple[str, ...]) -> None:
        self.branch = branch
        self.against = against
        """The branches merged earlier that touch these files; empty if the base conflicts."""
        self.files = files
        other = " and ".join(against) or "the base"
        hint = f"git merge {against[0] if against else 'the base'} (on {branch}), resolve, commit"
        super().__init__(f"merging {branch} conflicts with {other} in {', '.join(files)}", hint)

    @property
    def in_legs(self) -> str:
        """Return the conflict with the names of legs (spec: legs not file-disjoint)."""
        others = " and ".join(map(_leg, self.against)) or "what is on the task's branch already"
        return f"part {_leg(self.branch)} conflicts with {others} in {', '.join(self.files)}"

    @property
    def facts(self) -> dict[str, JsonValue]:
        """Return the conflict as JSON, from which programs build the possible answers."""
        return {"branch": self.branch, "against": list(self.against), "files": list(self.files)}


def _leg(branch: str) -> str:
    match = _LEG.fullmatch(branch)
    return f"{match['leg']} ({branch})" if match else branch


def merge(worktree: Worktree, branches: Sequence[str]) -> Worktree:
    """Merge the branches one after another into the job's starting point.

    No-op if the recorded base already contains all branches: then this is a repeated call, and the job may be running
    in the work folder. Everything is merged in the object store first; then the files are written once.
    """
    repo = record_of(worktree.path).repo
    wanted = [(branch, commit_of(repo, branch)) for branch in branches]  # resolve all of them before merging anything
    if all(contains(repo, worktree.base, commit) for _, commit in wanted):
        return worktree
    old = tip(repo, worktree.branch) if worktree.branch else None
    head = old or worktree.base
    for done, (branch, commit) in enumerate(wanted):
        head = merge_one(repo, worktree.base, head, branch, commit, wanted[:done])
    if worktree.branch and old != head:
        clear_ref_lock(common_directory(repo), worktree.branch)
        if not move(repo, worktree.branch, head, old, f"service: merged {', '.join(branches)}"):
            raise RefusedError(f"{worktree.branch} is being changed by somebody else", f"git log {worktree.branch}")
    fill_all(common_directory(repo), worktree.path, side_of(worktree.path), head)
    return start_from(repo, worktree, head)


def merge_one(repo: Path, base: str, head: str, branch: str, commit: str, earlier: Sequence[tuple[str, str]]) -> str:
    """Merge a commit onto the head. Raise MergeConflict, naming the conflicting branches among the earlier ones."""
    if contains(repo, head, commit):
        return head
    if contains(repo, commit, head):
        return commit
    tree = merged_tree(repo, head, commit)
    if isinstance(tree, CommitConflict):
        files = set(tree.files)
        against = tuple(name for name, other in earlier if _touched_by(repo, base, other) & files)
        raise MergeConflict(branch, against, all_printable(files))
    return commit_merge(repo, tree, (head, commit), f"Merge {_leg(branch)}\n")


def _touched_by(repo: Path, base: str, commit: str) -> set[str]:
    start = merge_base(repo, base, commit)
    return {change.path for change in changes(repo, start, commit)} if start else set()
