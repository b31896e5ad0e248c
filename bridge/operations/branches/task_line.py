"""The line of an ended tree: the commit that holds all of its work that merges cleanly (rulings O2, O6)."""

from pathlib import Path

from activities.git import git_branches
from activities.store import attempt_rows
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.github.effective_jobs import chain_of
from workflows.model.states import JobState


def of_ended_tree(service: Service, tree: Tree, repo: Path, base: str) -> str:
    """Return the commit of the tree's last job, else that job's base; empty if the tree runs, or if the job has
    delegated since.
    """
    last = chain_of(tree.jobs, tree.jobs[0]).jobs[-1]
    if not base or not tree.over or any(job.parent_job_id == last.job_id and job.delegation_id for job in tree.jobs):
        return ""
    began = [run.base_sha for run in attempt_rows.of_job(service.store, last.job_id)[-1:]]
    left = last.head_sha if last.state is JobState.SUCCEEDED else None
    line = left or next(iter(began), None)
    return line if line and line != base and git_branches.commit(repo, line) else ""
