"""Merge legs' branches into the branch of their task: in the object store, never in a checkout (ruling I5).

Where several hosts merge into it, it moves at the hub first, and only if nobody else has moved it there (ruling Q3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import git_branches
from activities.git.command import all_printable, printable
from activities.git.hub import HubBranch
from activities.git.merges.commits import CommitConflict, commit_merge, merged_tree
from activities.git.work_folder.commit import message, trailers_of
from activities.stations.hook import reach
from workflows.model.errors import Commands, RefusedError

TRIES = 5


@dataclass(frozen=True)
class Contribution:
    """Commits to merge: a leg's branch, or the line of a tree, which has all its legs' commits."""

    leg: str
    job_id: str
    branch: str
    commit: str
    summary: str = ""
    forwards: bool = False
    """True to fast-forward the task branch where that is possible, without a merge commit (ruling O6)."""
    agent: str = ""
    model: str = ""
    task_id: str = ""

    @property
    def message(self) -> str:
        what = "the line" if self.forwards else f"part {self.leg}"
        subject = f"Merge {what}: {self.summary}" if self.summary else f"Merge {what} ({self.branch})"
        who = trailers_of(self.job_id, agent=self.agent, model=self.model, task_id=self.task_id, branch=self.branch)
        return message(subject, who)


@dataclass(frozen=True)
class Merged:
    """The task branch's head, and the contributions that were new to it."""

    branch: str
    head: str
    fresh: tuple[Contribution, ...]


class TaskBranchConflict(RefusedError):  # noqa: N818
    """A leg's commits conflict with the task branch, which is unchanged."""

    code = "merge_conflict"

    def __init__(self, branch: str, clashing: Contribution, before: tuple[Contribution, ...], files: tuple[str, ...]):
        self.clashing = clashing
        self.before = before
        """Contributions that merged before the conflict in this call; they are discarded, too."""
        self.files = files
        super().__init__(f"part {clashing.leg} ({clashing.branch}) conflicts with {branch} in {', '.join(files)}")


def merge_all(
    repo: Path, branch: str, start: str, legs: Sequence[Contribution], at_hub: HubBranch | None = None
) -> Merged:
    """Merge legs in order, all or nothing: the branch moves once, at the end.

    A missing branch is made at `start`. Commits that the branch contains already are not merged again.
    """
    for _ in range(TRIES):
        old = git_branches.tip(repo, branch)
        head = _join_hub(repo, branch, old or start, at_hub)
        fresh: list[Contribution] = []
        for leg in legs:
            if not git_branches.contains(repo, head, leg.commit):
                head = _merge_one(repo, branch, head, leg, fresh)
                fresh.append(leg)
        merged, moves = Merged(branch, head, tuple(fresh)), head != (old or start)
        if moves and (where := git_branches.checkout_of(repo, branch)):
            raise RefusedError(f"the branch {branch} is checked out in {where}: no checkout is changed from outside")
        if at_hub and (moves or old) and not at_hub.move(head):
            continue
        why = f"service job merge: {', '.join(each.job_id for each in fresh)}"
        if not moves or git_branches.move(repo, branch, head, old, why) or git_branches.tip(repo, branch) == head:
            reach("branch merged", branch)
            return merged
    raise RefusedError(f"the branch {branch} is being changed by somebody else", "try again in a moment")


def _join_hub(repo: Path, branch: str, head: str, at_hub: HubBranch | None) -> str:
    """Return a commit that contains this head and all that other hosts have merged: the hub's commit if it contains the
    head, else a merge.
    """
    there = at_hub.tip if at_hub else None
    if at_hub is None or there is None or git_branches.contains(repo, head, there):
        return head
    if git_branches.contains(repo, there, head):
        return there
    tree = merged_tree(repo, there, head)
    if isinstance(tree, CommitConflict):
        files, where = ", ".join(all_printable(tree.files)), printable(str(repo))
        raise RefusedError(
            f"{branch} has commits here that conflict with those at {at_hub.hub.safe_url} in {files}; "
            "nothing was changed",
            Commands(f"git -C {where} log {there}..{branch}", f"git -C {where} branch -f {branch} {there}"),
        )
    return commit_merge(repo, tree, (there, head), message("Merge what another host merged", {"Branch": branch}))


def _merge_one(repo: Path, branch: str, head: str, leg: Contribution, before: Sequence[Contribution]) -> str:
    """Make a merge commit for every leg: the first-parent history of the task branch is the list of legs."""
    if leg.forwards and git_branches.contains(repo, leg.commit, head):
        return leg.commit
    tree = merged_tree(repo, head, leg.commit)
    if isinstance(tree, CommitConflict):
        raise TaskBranchConflict(branch, leg, tuple(before), all_printable(tree.files))
    return commit_merge(repo, tree, (head, leg.commit), leg.message)
