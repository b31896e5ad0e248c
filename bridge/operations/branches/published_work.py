"""The commit to publish for a tree or a leg, and the name of its branch on GitHub (ruling L9)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from activities.git import branches as git
from bridge.operations.branches import branches, task_line
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.foreign_commits import refuse_foreign
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.facts import OUR_BRANCHES
from workflows.model.errors import NotFoundError, RefusedError
from workflows.model.rows import JobRecord
from workflows.model.states import JobState


@dataclass(frozen=True)
class Work:
    """A commit, and the branch name it gets on GitHub."""

    branch: str
    commit: str


class NothingToPublishError(RefusedError):
    """No job has left any work."""


def work_of(service: Service, job: JobRecord) -> Work:
    """Return the work of a whole tree for its root's id, else of one leg; raise unless one branch has all of
    that work.
    """
    tree = branches.of_tree(service, job.job_id, typed=f"service job publish {job.job_id}", fresh=True)
    path = Path(tree.path)
    work = _of_root(path, tree) if job.job_id == job.root_job_id else _of_leg(tree, job)
    if not work.branch.startswith(OUR_BRANCHES):
        message = f"{work.branch or job.job_id} is not a branch of the service: only {OUR_BRANCHES}... is published"
        raise RefusedError(message, f"service job branches {job.root_job_id}")
    if work.commit == tree.line != tree.head:
        task_line.refuse_foreign_on(service, tree, "; nothing was published")
    elif work.commit != tree.head:
        for leg in tree.legs:
            if leg.branch and work.commit in (leg.head_sha, git.tip(path, leg.branch)):
                refuse_foreign(service, tree, replace(leg, head_sha=work.commit), "; nothing was published")
    return work


def _of_root(path: Path, tree: Branches) -> Work:
    """Return the work to publish of a tree: the task's branch; before the first merge the line, or one branch with all
    work.

    So one pull request gets everything that is ever published of a tree.
    """
    if tree.head or tree.line:
        return Work(tree.task_branch, tree.head or tree.line)
    ready = [leg for leg in tree.legs if leg.state is BranchState.UNMERGED and leg.job_state is JobState.SUCCEEDED]
    if ready:
        commits = {leg.branch: leg.head_sha or "" for leg in ready}
        if whole := _whole(path, list(commits.values())):
            return Work(tree.task_branch, whole)
        message = f"{len(commits)} branches hold work of {tree.root_job_id}, and {tree.task_branch} is not made yet"
        insists = "" if any(not leg.objection for leg in ready) else " --anyway"
        raise RefusedError(message, f"service job merge {tree.root_job_id}{insists}")
    if any(leg.state is BranchState.MERGED for leg in tree.legs):
        message = f"the branch {tree.task_branch} is gone"
        raise NotFoundError(message, f"service job branches {tree.root_job_id}")
    return Work(tree.task_branch, _so_far(path, tree))


def _so_far(path: Path, tree: Branches) -> str:
    """Return the commit that the running jobs have reached, if one of their branches has all of it."""
    running = [leg for leg in tree.legs if leg.state is BranchState.RUNNING]
    tips = {leg.branch: tip for leg in running if (tip := git.tip(path, leg.branch)) and tip != leg.base_sha}
    if not tips:
        message = f"there is nothing to publish: no job of {tree.root_job_id} has left commits"
        hint = f"service job tree {tree.root_job_id} --watch" if running else f"service job branches {tree.root_job_id}"
        raise NothingToPublishError(message, hint)
    whole = _whole(path, list(tips.values()))
    if whole is None:
        message = f"{len(tips)} jobs of {tree.root_job_id} still work, each on a branch of its own"
        raise RefusedError(message, f"service job tree {tree.root_job_id} --watch")
    return whole


def _whole(path: Path, commits: Sequence[str]) -> str | None:
    """Return the commit that contains all the others; None if there is no such commit."""
    found = (each for each in commits if all(git.contains(path, each, other) for other in commits))
    return next(found, None)


def _of_leg(tree: Branches, job: JobRecord) -> Work:
    leg = next((each for each in tree.legs if each.job_id == job.job_id), None)
    if job.action is not Action.IMPLEMENT or leg is None:
        message = f"{job.job_id} ({job.action}) has no branch: what it changed was thrown away"
        raise NothingToPublishError(message, f"service job publish {tree.root_job_id}")
    if job.state in {JobState.QUEUED, JobState.RUNNING}:
        raise RefusedError(f"{job.job_id} is still {job.state}", f"service job tree {job.job_id} --watch")
    if job.state is not JobState.SUCCEEDED:
        why = f": {job.reason}" if job.reason else ""
        message = f"{job.job_id} ended {job.state}{why}; only work that succeeded is published"
        raise RefusedError(message, branches.again(job))
    return Work(leg.branch, _commit(tree, leg))


def _commit(tree: Branches, leg: LegBranch) -> str:
    match leg.state:
        case BranchState.EMPTY:
            message = f"{leg.job_id} changed nothing: there is nothing to publish"
            raise NothingToPublishError(message, f"service job show {leg.job_id}")
        case BranchState.GONE | BranchState.DROPPED:
            message = f"the branch {leg.branch} of {leg.job_id} is gone"
            back = branches.restore(tree.path, leg.branch, leg.head_sha or "")
            hint = back if leg.ahead is not None else f"service job branches {tree.root_job_id}"
            raise NotFoundError(message, hint)
        case _:
            return leg.head_sha or ""
