"""What has become of a tree, in one sentence that every surface can show (rulings O6, M3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import git_branches
from activities.git.registered_repository import git_directory
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.jobs.jobs import Tree
from workflows.contract.models import Action, Decision
from workflows.model.rows import JobRecord
from workflows.model.states import JobState
from workflows.policy.decisions import report
from workflows.policy.tree_states import TreeState

SHORT = 7


@dataclass(frozen=True)
class MergedWork:
    """The work of a tree in one branch, with nothing left to merge into it."""

    parts: int
    into: str
    head: str
    is_mine: bool
    """True for the operator's own branch, or the default branch of a mirror; False for the branch of the task."""

    @property
    def says(self) -> str:
        """Return how many parts are merged into which branch, with the commit that holds them."""
        work = "The work is" if self.parts == 1 else f"{self.parts} parts"
        return f"{work} merged into {self.into} ({self.head[:SHORT]})"


def own_branch(tree: Branches) -> str:
    """Return the name of the branch that is checked out, or of the default branch where there is only a mirror."""
    head = (git_directory(Path(tree.path)) / "HEAD").read_text().strip()
    named = head.removeprefix("ref: refs/heads/")
    return tree.default or (named if named != head else "the commit that is checked out")


def merged_work(tree: Branches) -> MergedWork | None:
    """Return where the work of a tree is merged, if it is: the operator's own branch, else the branch of its task."""
    repo, last = Path(tree.path), {leg.branch: leg for leg in tree.legs if leg.job_state is JobState.SUCCEEDED}
    legs = [leg for leg in last.values() if leg.state in (BranchState.MERGED, BranchState.UNMERGED, BranchState.GONE)]
    mine = [leg for leg in legs if leg.ahead is not None and git_branches.contains(repo, "HEAD", leg.head_sha or "")]
    if mine:
        return MergedWork(len(mine), own_branch(tree), _newest(repo, tree, mine), is_mine=True)
    merged = [leg for leg in legs if leg.state is BranchState.MERGED]
    return MergedWork(len(merged), tree.task_branch, tree.head, is_mine=False) if merged and tree.head else None


def _newest(repo: Path, tree: Branches, legs: Sequence[LegBranch]) -> str:
    """Return the commit that holds these legs: the head of the task's branch, or the last leg's once that is gone."""
    whole = tree.head if tree.head and git_branches.contains(repo, "HEAD", tree.head) else tree.line
    return whole or legs[-1].head_sha or ""


def sentence(tree: Tree, merged: MergedWork | None = None) -> str:
    """Return what has become of a tree, or how far it is."""
    match tree.state:
        case TreeState.DONE:
            return _done(tree, merged)
        case TreeState.WAITING:
            asks = any(each.questions for each in tree.rounds if each.end is None)
            return "It needs your answer." if asks else "A part failed: it needs your decision."
        case TreeState.BLOCKED:
            return "It stopped, and needs your decision."
        case TreeState.ENDING:
            return "It is being ended: what runs finishes, and one last job sums up."
        case TreeState.QUEUED | TreeState.RUNNING:
            return _progress(tree)
        case TreeState.CUT_SHORT:
            return f"A limit ended it early: {tree.task.reason}"
        case TreeState.FAILED | TreeState.CANCELLED:
            how = "Cancelled" if tree.state is TreeState.CANCELLED else "It ended without a result"
            return f"{how}: {tree.task.reason}" if tree.task.reason else f"{how}."


def _done(tree: Tree, merged: MergedWork | None) -> str:
    without = _without(tree)
    if merged:
        return merged.says + ("" if merged.is_mine else ", and not yet into your branch") + f"{without}."
    last = last_job(tree)
    who = "the lead" if any(job.delegation_id for job in tree.jobs) else last.agent
    says = "says that it is implemented" if last.decision is Decision.IMPLEMENTED else report(last.decision)
    return (f"Done{without}: {who} {says}." if last.decision else f"Done{without}.") + _checked(tree)


def _checked(tree: Tree) -> str:
    """Return whether an agent that was asked to review has looked at the changes, as a sentence of its own."""
    if not any(job.work and job.head_sha for job in tree.jobs):
        return " Nothing was changed."
    reviews = [job for job in tree.jobs if job.action is Action.REVIEW and job.state is JobState.SUCCEEDED]
    return f" Reviewed by {reviews[-1].agent}." if reviews else " No agent was asked to review it."


def last_job(tree: Tree) -> JobRecord:
    """Return the lead's last job, with the result of the tree."""
    return next((job for job in reversed(tree.jobs) if not job.delegation_id), tree.jobs[-1])


def failed_parts(tree: Tree) -> list[JobRecord]:
    """Return the parts of a tree that is done of which no later attempt succeeded."""
    last = {job.delegation_id: job for job in tree.jobs if job.delegation_id}
    return [job for job in last.values() if job.state is JobState.FAILED] if tree.state is TreeState.DONE else []


def _without(tree: Tree) -> str:
    failed = failed_parts(tree)
    if not failed:
        return ""
    parts = f"part {failed[0].delegation_id}" if len(failed) == 1 else f"{len(failed)} parts"
    return f" without {parts}, which failed"


def _progress(tree: Tree) -> str:
    parts = [job for job in tree.jobs if job.delegation_id]
    running = [job for job in tree.jobs if job.state is JobState.RUNNING]
    if not running:
        return f"Queued: {tree.task.why}." if tree.task.why else "Queued."
    if not parts:
        return f"{running[0].agent} works on it."
    done = sum(job.state.has_ended for job in parts)
    return f"{done} of {len(parts)} parts have ended, {len(running)} {'job runs' if len(running) == 1 else 'jobs run'}."
