"""Commits that a job needs, when people may have merged or dropped branches meanwhile (rulings I1, I2, I5, O2)."""

from collections.abc import Sequence
from pathlib import Path

from activities.git import git_branches
from activities.git.merges.task_line import LinePart
from activities.host.context import Context
from activities.store import branch_rows, job_rows
from workflows.model.event_kinds import BranchEventKind
from workflows.model.jobs import JobRun, Work


def revisions_to_merge(context: Context, repo: Path, run: JobRun) -> tuple[str, ...]:
    """Return the revisions to merge, in order.

    A missing branch counts by its last commit, unless a person dropped it without merging it.
    """
    if all(git_branches.tip(repo, branch) for branch in run.branch_deps):
        return run.branch_deps
    known, unwanted = heads(context, run), _dropped_branches(context, run)
    revisions = []
    for branch in run.branch_deps:
        if git_branches.tip(repo, branch):
            revisions.append(branch)
        elif branch not in unwanted:
            head = known.get(branch)
            revisions.append((head and git_branches.commit(repo, head)) or branch)
    return tuple(revisions)


def parts_of(context: Context, repo: Path, run: JobRun, works: Sequence[Work]) -> list[LinePart]:
    """Return the parts of the line, without dropped branches. A branch counts at its job's last commit, without later
    ones.
    """
    tips = {each.branch: git_branches.tip(repo, each.branch) for each in works}
    unwanted = set() if all(tips.values()) else _dropped_branches(context, run)
    return [
        LinePart(work.leg, work.job_id, work.branch, work.head or tips[work.branch] or "")
        for work in works
        if work.branch not in unwanted or tips[work.branch]
    ]


def heads(context: Context, run: JobRun) -> dict[str, str | None]:
    """Return the last commit of each branch of the tree."""
    return {job.branch: job.head_sha for job in job_rows.tree(context.store, run.root_job_id) if job.branch}


def _dropped_branches(context: Context, run: JobRun) -> set[str]:
    """Return the branches that a person dropped without merging them."""
    return {
        event.branch
        for kind, _, event in branch_rows.events_of(context.store, run.root_job_id)
        if kind is BranchEventKind.DROPPED and not event.merged
    }
