"""Where a job works: on a branch of its own when it may write, else in a throwaway worktree (rulings I1, I2)."""

from dataclasses import dataclass, replace
from pathlib import Path

from activities.git import worktrees
from activities.git.commit import commit_all
from activities.git.diff import Diff, capture_diff
from activities.git.observation import touched_files
from activities.git.worktrees import Worktree
from activities.jobs.context import Context
from activities.store import repos, runs
from activities.store.runs import Run
from workflows.contract.models import Action, ServiceResult
from workflows.errors import NotFoundError
from workflows.policy.observation import Observation, Touched, observe
from workflows.tree.jobs import JobRun


@dataclass(frozen=True)
class Workspace:
    """A recorded worktree: no run ever happens outside one."""

    repo: Path
    worktree: Worktree


@dataclass(frozen=True)
class Evidence:
    """What a job left in its worktree."""

    touched: Touched
    diff: Diff | None = None
    """What a reader changed and lost."""
    observation: Observation | None = None
    head_sha: str | None = None


def prepare(context: Context, run: JobRun, row: Run) -> Workspace:
    """The run's worktree, recorded before it is made; made again when a crash left it half made."""
    repo = _checkout(context, run)
    name = f"{run.repo.replace('/', '--')}/{run.job_id}-{run.attempt}"
    path = worktrees.place(context.home.worktrees, name)
    branch = branch_name(run) if run.action is Action.IMPLEMENT else None
    base = row.base_sha or worktrees.commit_of(repo, "HEAD")
    runs.place(context.store, row, worktree=str(path), branch=branch, base_sha=base)
    worktree = worktrees.add_branch(repo, path, branch, base) if branch else worktrees.add_detached(repo, path, base)
    return Workspace(repo, replace(worktree, base=base))


def branch_name(run: JobRun) -> str:
    """`service/<job id>-<leg id>` (ruling I1); a later attempt keeps off the branch of the one before."""
    leg = f"-{run.delegation_id}" if run.delegation_id else ""
    attempt = f"-attempt{run.attempt}" if run.attempt > 1 else ""
    return f"service/{run.job_id}{leg}{attempt}"


def collect(place: Workspace, run: JobRun, result: ServiceResult | None) -> Evidence:
    """Observe first, then commit what the agent left (ruling I4)."""
    touched = touched_files(place.worktree)
    if not place.worktree.branch:
        return Evidence(touched, diff=capture_diff(place.worktree) if touched.files else None)
    return Evidence(
        touched,
        observation=observe(result.changes_made, touched) if result else None,
        head_sha=commit_all(place.worktree, run.job_id, f"{run.action} for {run.job_id} by {run.worker.name}"),
    )


def dispose(place: Workspace) -> None:
    """Remove the worktree; a branch stays until its commits are merged or an operator drops it."""
    worktrees.dispose(place.repo, place.worktree.path)


def _checkout(context: Context, run: JobRun) -> Path:
    repo = repos.get(context.store, run.repo)
    if repo is None:
        raise NotFoundError(f"the repository {run.repo} is not registered", f"service repo add {run.repo} PATH")
    return Path(repo.path)
