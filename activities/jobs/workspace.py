"""Where a job works: on a branch of its own when it may write, else in a throwaway worktree (rulings I1, I2)."""

from dataclasses import dataclass
from pathlib import Path

from workflows.policy.observation import Observation, observe

from activities.git import commit, diff, observation, worktrees
from activities.jobs.context import Context
from activities.store import repos
from activities.store.runs import Run, place
from workflows.contract.models import Action, ServiceResult
from workflows.errors import NotFoundError
from workflows.tree.jobs import JobRun

DIFF_LIMIT = 256 * 1024


@dataclass(frozen=True)
class Workspace:
    """A recorded worktree: no run ever happens outside one."""

    repo: Path
    path: Path
    branch: str | None
    base_sha: str


def prepare(context: Context, run: JobRun, row: Run) -> Workspace:
    """The run's worktree, recorded before anything happens in it; made again when a crash left it half made."""
    repo = _checkout(context, run)
    path = context.home.worktrees / run.repo.replace("/", "--") / f"{run.job_id}-{run.attempt}"
    if row.worktree and row.base_sha and worktrees.is_usable(Path(row.worktree)):
        return Workspace(repo, Path(row.worktree), row.branch, row.base_sha)
    branch = branch_name(run) if run.action is Action.IMPLEMENT else None
    base = worktrees.tip(repo)
    place(context.store, row, worktree=str(path), branch=branch, base_sha=base)
    if branch:
        worktrees.add_branch(repo, path, branch, base)
    else:
        worktrees.add_detached(repo, path, base)
    return Workspace(repo, path, branch, base)


def branch_name(run: JobRun) -> str:
    """`service/<job id>-<leg id>` (ruling I1); a later attempt keeps off the branch of the one before."""
    leg = f"-{run.delegation_id}" if run.delegation_id else ""
    attempt = f"-attempt{run.attempt}" if run.attempt > 1 else ""
    return f"service/{run.job_id}{leg}{attempt}"


@dataclass(frozen=True)
class Evidence:
    """What a job left in its worktree."""

    observation: Observation | None
    head_sha: str | None
    diff: str
    touched: tuple[str, ...]


def collect(place: Workspace, run: JobRun, result: ServiceResult | None) -> Evidence:
    """Observe first, then commit what the agent left (ruling I4), then say what changed."""
    touched = tuple(observation.touched_files(place.path, place.base_sha))
    text = diff.capture(place.path, place.base_sha, DIFF_LIMIT) if touched else ""
    if not place.branch:
        return Evidence(None, None, text, touched)
    observed = observe(result.changes_made, touched) if result else None
    head = commit.commit_all(place.path, run.job_id, f"{run.worker.name}: {run.action} for {run.job_id}")
    return Evidence(observed, head, text, touched)


def dispose(place: Workspace) -> None:
    """Remove the worktree; a branch stays until its commits are merged or an operator drops it."""
    worktrees.dispose(place.repo, place.path)


def _checkout(context: Context, run: JobRun) -> Path:
    repo = repos.get(context.store, run.repo)
    if repo is None:
        raise NotFoundError(
            f"the repository {run.repo} is not registered any more", f"service repo add {run.repo} PATH"
        )
    return Path(repo.path)
