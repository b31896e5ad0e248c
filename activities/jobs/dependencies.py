"""Which commits a job needs to see, when people may have merged or dropped branches meanwhile (rulings I1, I2, I5)."""

from pathlib import Path

from activities.git import branches
from activities.host.context import Context
from activities.store import branches as told
from activities.store import jobs as stored
from workflows.model.branch_events import BranchEventKind
from workflows.model.jobs import JobRun


def needed(context: Context, repo: Path, run: JobRun) -> tuple[str, ...]:
    """The revisions to merge, in order. A branch that is gone counts by its last commit, unless a person dropped it
    without merging: then its work is not wanted."""
    if all(branches.tip(repo, branch) for branch in run.branch_deps):
        return run.branch_deps
    heads = {job.branch: job.head_sha for job in stored.tree(context.store, run.root_job_id) if job.branch}
    unwanted = {
        event.branch
        for kind, _, event in told.told(context.store, run.root_job_id)
        if kind is BranchEventKind.DROPPED and not event.merged
    }
    revisions = []
    for branch in run.branch_deps:
        if branches.tip(repo, branch):
            revisions.append(branch)
        elif branch not in unwanted:
            head = heads.get(branch)
            revisions.append((head and branches.commit(repo, head)) or branch)
    return tuple(revisions)
