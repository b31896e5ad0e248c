"""The branches of a tree: their state, and how far each is from the task's branch (ruling I5)."""

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import computed_field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from activities.git import git_branches, hub
from activities.git.command import printable
from activities.git.registered_repository import common_directory
from activities.host import checkouts
from activities.store import attempt_rows, branch_rows, tree_rows
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from bridge.operations.branches import hub_work, task_line
from bridge.operations.branches.objections import Objections
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.rows import JobRecord
from workflows.model.states import JobState, WaitsFor


class BranchState(StrEnum):
    """The state of a branch."""

    WAITING = "waiting"
    """Its job has not made it yet."""
    RUNNING = "running"
    """Its job works on it."""
    EMPTY = "empty"
    """Its job committed nothing."""
    UNMERGED = "unmerged"
    MERGED = "merged"
    DROPPED = "dropped"
    GONE = "gone"
    UNKNOWN = "unknown"


@pydantic_dataclass(frozen=True)
class LegBranch:
    """A branch of the tree, and how far it is from the task branch."""

    leg: str
    job_id: str
    job_state: JobState
    branch: str
    head_sha: str | None
    base_sha: str | None
    state: BranchState
    exists: bool = False
    ahead: int | None = None
    behind: int | None = None
    commits: int | None = None
    """The commits of its job, merged or not."""
    files: int | None = None
    objection: str = ""
    """The reason why the leg is merged only with `--anyway`."""
    objector: str = ""
    """The job that objects."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def merge(self) -> str:
        """Return the command that merges the leg; empty if it has nothing to merge."""
        ready = self.state is BranchState.UNMERGED and self.job_state is JobState.SUCCEEDED
        return self.insisting(f"service job merge {self.job_id}") if ready else ""

    def insisting(self, command: str) -> str:
        """Return the command, with `--anyway` added if there is an objection to merging this leg."""
        return f"{command} --anyway" if self.objection else command


@dataclass(frozen=True)
class Branches:
    """Every branch of a tree. With a `problem` the repository is unreadable, and all facts come from the store."""

    root_job_id: str
    repo: str
    path: str
    task_branch: str
    head: str | None
    legs: tuple[LegBranch, ...]
    problem: str = ""
    way_on: str = ""
    """The command that solves the problem."""
    base: str = ""
    """The commit that the tree started from; empty until its first job has begun (ruling O1)."""
    line: str = ""
    """The line: the commit that holds all of the tree's work that merges cleanly; only of an ended tree (ruling O2).

    Empty if a person dropped a part of it.
    """
    owns_task_branch: bool = True
    """False for a tree that resolves the conflicts of another tree: the task branch belongs to that tree."""
    default: str = ""
    """The default branch and its remote, in words, where this host has only a mirror of it; else empty."""
    stale: str = ""
    """Why other hosts' latest work may be missing; empty if it was fetched."""


def checkout(service: Service, name: str, typed: str) -> Repo:
    """Return the repository with its path on this host. Raise with a hint if it is not usable here.

    If another host has the repository, the hint is `ssh HOST` with the typed command. If the checkout moved, it is
    `service repo add`.
    """
    repo = repo_rows.must_get(service.store, name)
    repo.refuse_elsewhere(service.settings.host, typed)
    try:
        common_directory(checkouts.path_of(service, repo))
    except (RefusedError, UnreachableError):
        raise
    except ServiceError as error:
        raise NotFoundError(
            f"{error.message}: has {name} moved?", f"service repo add {name} PATH, with where it is now"
        ) from None
    return checkouts.seen_here(service, repo)


def of_tree(
    service: Service, job_id: str, *, only: str | None = None, typed: str = "", fresh: bool = False
) -> Branches:
    """Return every branch of the tree a job belongs to (ruling B1), or the branch of the job `only`.

    Orders, which change branches, set `fresh`: then other hosts' commits are fetched first, and an unreadable
    repository is an error. Without it, only local commits are shown if the hub can't be reached. `typed` is the command
    that was typed.
    """
    tree = jobs.tree(service, job_id)
    root = tree.task.root_job_id
    base, of_another = tree_rows.base_of(service.store, root)
    name = of_another or f"service/{tree.task.task_id}"
    writers = [job for job in tree.jobs if job.action is Action.IMPLEMENT and only in (None, job.job_id)]
    unread = Branches(root, tree.task.repo, "", name, None, (), base=base, owns_task_branch=not of_another)
    try:
        repo, stale = _fetch(service, tree, typed or f"service job branches {root}", fresh=fresh)
        path = Path(repo.path)
        head = git_branches.tip(path, name)
        reader = _BranchReader(service, tree, path, head)
        legs = tuple(reader.at(job) for job in writers)
    except ServiceError as error:
        if fresh:
            raise
        reader = _BranchReader(service, tree, None, None)
        known = repo_rows.get(service.store, tree.task.repo)
        return replace(
            unread,
            path=checkouts.seen_here(service, known).path if known else "",
            legs=tuple(reader.at(job) for job in writers),
            problem=error.message,
            way_on=error.hint,
        )
    line = task_line.of_ended_tree(service, tree, path, base)
    dropped = [leg for leg in legs if leg.state is BranchState.DROPPED and leg.ahead is not None]
    if line and any(_contains(path, line, leg.head_sha or "") for leg in dropped):
        line = ""
    default = f"{repo.default_branch} at {hub.safe_url(repo.remote)}" if repo.is_mirror else ""
    return replace(unread, path=repo.path, head=head, legs=legs, line=line, default=default, stale=stale)


def with_work(service: Service, job: JobRecord) -> Path:
    """Fetch the job's last commit if this host lacks it, and return the path of the repository here."""
    repo = repo_rows.must_get(service.store, job.repo)
    here = checkouts.is_made(service, repo) and git_branches.commit(
        checkouts.path_of(service, repo), job.head_sha or ""
    )
    if not here and (fault := hub_work.look(service, repo, jobs.tree(service, job.job_id))):
        raise fault
    return Path(checkout(service, repo.name, f"service job diff {job.job_id}").path)


def _fetch(service: Service, tree: Tree, typed: str, *, fresh: bool) -> tuple[Repo, str]:
    """Return the repository after fetching a tree's commits, and the reason why they may be out of date."""
    repo, stale = repo_rows.must_get(service.store, tree.task.repo), None
    if fresh:
        hub_work.fetch(service, repo, tree)
    elif (stale := hub_work.look(service, repo, tree)) and not checkouts.is_made(service, repo):
        raise stale
    return checkout(service, repo.name, typed), stale.message if stale else ""


class _BranchReader:
    """A reader of one repository, for all branches of a tree."""

    def __init__(self, service: Service, tree: Tree, repo: Path | None, head: str | None) -> None:
        self._service, self._repo, self._head = service, repo, head
        self._objections = Objections(service, tree.jobs)
        events = branch_rows.events_of(service.store, tree.task.root_job_id)
        self._merged = {(event.branch, event.head_sha) for kind, _, event in events if event.merged}
        self._dropped = {event.branch for kind, _, event in events if kind is BranchEventKind.DROPPED}

    def at(self, job: JobRecord) -> LegBranch:
        runs = attempt_rows.of_job(self._service.store, job.job_id)
        run = next((run for run in reversed(runs) if run.branch and job.branch in (run.branch, None)), None)
        branch = job.branch or (run.branch if run else None) or ""
        base = run.base_sha if run else None
        name = job.delegation_id or ("root" if job.continuation == "none" else str(job.continuation))
        seen = LegBranch(name, job.job_id, job.state, branch, job.head_sha, base, BranchState.UNKNOWN)
        if job.state in {JobState.QUEUED, JobState.RUNNING}:
            state = BranchState.RUNNING if branch else BranchState.WAITING
            return replace(seen, state=state)
        if job.head_sha is None:
            return replace(seen, state=BranchState.EMPTY)
        leg = self._from_repo(seen, job.head_sha) if self._repo else seen
        objection, objector = self._objections.to(job, leg.head_sha)
        return replace(leg, objection=objection, objector=objector)

    def _from_repo(self, leg: LegBranch, recorded: str) -> LegBranch:
        repo = self._repo or Path()
        tip = git_branches.tip(repo, leg.branch)
        head = tip or git_branches.commit(repo, recorded)
        state = self._state(leg, tip, head)
        facts: dict[str, Any] = {"state": state, "exists": tip is not None, "head_sha": head or recorded}
        if head is not None:
            other = self._head or leg.base_sha or head
            facts |= _apart(repo, head, other, leg.base_sha or other)
        return replace(leg, **facts)

    def _state(self, leg: LegBranch, tip: str | None, head: str | None) -> BranchState:
        repo = self._repo or Path()
        if head is not None and self._head is not None and _contains(repo, self._head, head):
            return BranchState.MERGED
        if self._head is None and (leg.branch, head or leg.head_sha) in self._merged:
            return BranchState.MERGED
        if tip is not None:
            return BranchState.UNMERGED
        return BranchState.DROPPED if leg.branch in self._dropped else BranchState.GONE


@lru_cache(maxsize=1024)
def _apart(repo: Path, head: str, other: str, base: str) -> dict[str, int]:
    """Count commits and files between commits. Cached, because commits never change."""
    own = git_branches.distance(repo, head, base).ahead
    facts = {"commits": own, "files": len(git_branches.changes(repo, base, head))}
    return asdict(git_branches.distance(repo, head, other)) | facts


@lru_cache(maxsize=1024)
def _contains(repo: Path, newer: str, older: str) -> bool:
    return git_branches.contains(repo, newer, older)


@dataclass(frozen=True)
class WayOut:
    """A conflict between legs that blocks a task, and the commands that solve it (rulings B3, I5)."""

    job_id: str
    root_job_id: str
    what: str
    files: tuple[str, ...]
    commands: tuple[str, ...]


def ways_out(service: Service, roots: Collection[str]) -> Iterator[WayOut]:
    """Yield the conflicts that block these trees, without those whose legs have been merged meanwhile."""
    for conflict in branch_rows.conflicts(service.store, roots):
        tree = of_tree(service, conflict.root_job_id)
        names = (*conflict.against, conflict.branch)
        legs = [next((leg for leg in tree.legs if leg.branch == name), None) for name in names]
        left = [leg for leg in legs if leg and leg.state in {BranchState.UNMERGED, BranchState.UNKNOWN}]
        others = " and ".join(map(_namer(tree.legs), conflict.against)) or f"what is on {tree.task_branch}"
        what = f"part {_namer(tree.legs)(conflict.branch)} conflicts with {others}"
        job = jobs.get(service, conflict.job_id)
        commands = (
            *(leg.insisting(f"service job merge {leg.job_id}") for leg in left[:-1]),
            *(by_hand(tree.path, tree.task_branch, left[-1].branch) if left else ()),
            *([f"service job retry {job.job_id}"] if job.waits_for is WaitsFor.RETRY else []),
        )
        yield WayOut(conflict.job_id, conflict.root_job_id, what, conflict.files, commands)


def _namer(legs: Sequence[LegBranch]) -> Any:
    known = {leg.branch: leg for leg in legs}
    return lambda name: f"{known[name].leg} ({known[name].job_id})" if name in known else name


def touched_files(repo: Path, leg: LegBranch) -> set[str]:
    """Return the files that a leg's commits changed, as display texts."""
    if not leg.base_sha or not leg.head_sha or git_branches.commit(repo, leg.head_sha) is None:
        return set()
    return {printable(each.path) for each in git_branches.changes(repo, leg.base_sha, leg.head_sha)}


def by_hand(path: str, task_branch: str, branch: str) -> tuple[str, ...]:
    """Return the commands that merge one leg by hand where it conflicts.

    They use a temporary worktree beside the checkout, or the worktree where the branch is checked out already.
    """
    there = None
    with suppress(ServiceError):
        there = git_branches.checkout_of(Path(path), task_branch)
    repo, place = shlex.quote(path), shlex.quote(str(there or f"{path}-{task_branch.removeprefix('service/')}"))
    merges = (
        f"git -C {place} merge --no-ff {branch}   # resolve the files it names, `git add` them",
        f"git -C {place} commit --no-edit",
    )
    if there:
        return merges
    return (f"git -C {repo} worktree add {place} {task_branch}", *merges, f"git -C {repo} worktree remove {place}")


def again(job: JobRecord) -> str:
    """Return the command that retries a job; if its tree does not allow a retry, the command that shows why the job
    ended.
    """
    return f"service job {'retry' if job.waits_for is WaitsFor.RETRY else 'show'} {job.job_id}"


def restore(path: str, branch: str, head: str) -> str:
    """Return the command that restores a branch."""
    return f"git -C {shlex.quote(path)} branch {branch} {head}"


def leave(where: Path) -> str:
    """Return the command that detaches HEAD in this worktree, so that its branch can be checked out elsewhere."""
    return f"git -C {shlex.quote(str(where))} switch --detach"
