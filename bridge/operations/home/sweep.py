"""Sweeping up what killed processes left in repositories; nothing an open tree or a living agent owns."""

import re
from dataclasses import dataclass
from pathlib import Path

from activities.git.work import sweep as ground_level
from activities.git.work.sweep import Ground, Leftover
from activities.git.work.worktrees import worktree_prefix
from activities.host.apart import worth_keeping
from activities.runs.supervised_run import Claim
from activities.store import attempts as stored_runs
from activities.store import jobs as stored_jobs
from activities.store.registry.repos import Repo
from bridge.machine.progress import Step, unheard
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

_ROOT = re.compile(r"job-[0-9a-v]{12}")


@dataclass(frozen=True)
class Swept:
    """What was found in one repository. Not removed: it would be, by `--yes`, or there is a reason to keep it."""

    repo: str
    found: tuple[Leftover, ...]
    removed: bool
    problem: str = ""

    @property
    def removable(self) -> int:
        return sum(not leftover.keep for leftover in self.found)


def sweep(service: Service, name: str | None = None, *, yes: bool = False, step: Step = unheard) -> list[Swept]:
    """List what was left in one repository or all of this host; remove what can be, when told `yes`."""
    known = [repos.get(service, name)] if name else repos.every(service)
    chosen = [repo for repo in known if name or repo.host == service.settings.host]
    swept = []
    for number, repo in enumerate(chosen, 1):
        step(f"looking at {repo.name}, {number} of {len(chosen)}")
        swept.append(_sweep(service, repo, yes=yes))
    return swept


def _sweep(service: Service, repo: Repo, *, yes: bool) -> Swept:
    if repo.host != service.settings.host:
        return Swept(repo.name, (), removed=False, problem=f"it is on the host {repo.host}: sweep it there")
    ground = Ground(
        Path(repo.path),
        service.home.worktrees,
        worktree_prefix(repo.name),
        lambda name: is_busy(service, name),
        worth_keeping,
    )
    try:
        found = ground_level.leftovers(ground)
    except ServiceError as fault:
        return Swept(repo.name, (), removed=False, problem=fault.message)
    if yes:
        found = [ground_level.remove(ground, leftover) for leftover in found]
    return Swept(repo.name, tuple(found), removed=yes)


def root_in(name: str) -> str:
    """The tree that a worktree or a branch is of, by its name; empty when it names none."""
    found = _ROOT.search(name)
    return found[0] if found else ""


def is_busy(service: Service, name: str) -> bool:
    """Whether a tree that is not over, or can be re-opened, or a living agent owns it. The unknown is left alone."""
    root = root_in(name)
    task = stored_jobs.task_of(service.store, root) if root else None
    if task is None or not task.state.ended:
        return True
    jobs = stored_jobs.tree(service.store, task.root_job_id)
    runs = (run for job in jobs for run in stored_runs.of_job(service.store, job.job_id))
    return any((claim := Claim.read(Path(run.run_dir))) is not None and claim.alive for run in runs)
