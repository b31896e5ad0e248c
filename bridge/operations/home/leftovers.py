"""Removing what killed processes left in repositories, unless an open tree or a running agent owns it."""

import re
from dataclasses import dataclass
from pathlib import Path

from activities.git import hub
from activities.git.work_folder import leftovers as ground_level
from activities.git.work_folder.leftovers import Busy, Ground, Kind, Leftover
from activities.git.work_folder.worktrees import worktree_prefix
from activities.host import checkouts
from activities.host.helper_process import worth_keeping
from activities.runs.supervised_run import Claim
from activities.store import attempts as stored_runs
from activities.store import jobs as stored_jobs
from activities.store import trees as stored_trees
from activities.store.registry.repos import Repo
from bridge.machine.progress import Step, unheard
from bridge.operations.branches import hub_work
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

_ROOT = re.compile(r"job-[0-9a-v]{12}")


@dataclass(frozen=True)
class Swept:
    """A worktree or branch left in a repository. One that is not removed needs `--yes`, or has a reason to stay."""

    repo: str
    found: tuple[Leftover, ...]
    removed: bool
    problem: str = ""

    @property
    def removable(self) -> int:
        return sum(not leftover.keep for leftover in self.found)


def sweep(service: Service, name: str | None = None, *, yes: bool = False, step: Step = unheard) -> list[Swept]:
    """List what was left in one repository or in all of this host; with `yes`, remove what can be removed."""
    chosen = [repos.get(service, name)] if name else checkouts.every_here(service)
    swept = []
    for number, repo in enumerate(chosen, 1):
        step(f"looking at {repo.name}, {number} of {len(chosen)}")
        swept.append(_sweep(service, repo, yes=yes))
    return swept


def _sweep(service: Service, repo: Repo, *, yes: bool) -> Swept:
    if repo.host != service.settings.host:
        there = f"it is on the host {repo.host}; there: ssh {repo.host} service repo sweep {repo.name}"
        return Swept(repo.name, (), removed=False, problem=there)
    ground = Ground(
        Path(repo.path),
        service.home.worktrees,
        worktree_prefix(repo.name),
        lambda name: is_busy(service, name),
        worth_keeping,
    )
    found = list[Leftover]()
    try:
        found = ground_level.leftovers(ground)
        if yes:
            found = [ground_level.remove(ground, leftover) for leftover in found]
        at_hub = hub_leftovers(service, repo, ground.busy)
        if yes:
            merged = [each.name for each in found if each.kind is Kind.BRANCH and not each.keep]
            hub_work.remove(service, repo, [*merged, *at_hub])
    except ServiceError as fault:
        return Swept(repo.name, tuple(found), removed=yes, problem=fault.message)
    return Swept(repo.name, (*found, *(Leftover(Kind.REFERENCE, each) for each in at_hub)), removed=yes)


def hub_leftovers(service: Service, repo: Repo, busy: Busy) -> list[str]:
    """Return the names at the hub that nothing needs: snapshots of trees that are over, lines and kept work of those
    that have no branch there any more, and bases of no open tree.
    """
    through = checkouts.hub_of(service, repo)
    if through is None or not checkouts.is_made(service, repo):
        return []
    names = hub.listed(Path(repo.path), through)
    bases = stored_trees.open_bases(service.store, repo.name)
    with_branches = {root_in(name) for name in names if name.startswith("job-")}

    def is_needed(name: str) -> bool:
        if name.startswith(hub.BASES):
            return name.removeprefix(hub.BASES) in bases or bool(root_in(name) and busy(name))
        return busy(name) or (name.startswith((hub.LINES, hub.KEPT)) and root_in(name) in with_branches)

    kinds = (hub.LINES, hub.BASES, hub.SNAPS, hub.KEPT)
    return [name for name in names if name.startswith(kinds) and not is_needed(name)]


def root_in(name: str) -> str:
    """Return the tree whose id is in the name of a worktree or branch; empty if the name has none."""
    found = _ROOT.search(name)
    return found[0] if found else ""


def is_busy(service: Service, name: str) -> bool:
    """Return whether a tree is open, can be re-opened, or has a running agent; an unknown tree counts as busy."""
    root = root_in(name)
    task = stored_jobs.task_of(service.store, root) if root else None
    if task is None or not task.state.ended:
        return True
    jobs = stored_jobs.tree(service.store, task.root_job_id)
    runs = (run for job in jobs for run in stored_runs.of_job(service.store, job.job_id))
    return any((claim := Claim.read(Path(run.run_dir))) is not None and claim.alive for run in runs)
