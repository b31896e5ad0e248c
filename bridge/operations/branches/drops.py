"""Removing branches of a leg or of a tree on an operator's order (rulings I5, O6), and finding unmerged branches of
trees that can't be re-opened.
"""

import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from activities.git import git_branches, hub
from activities.git.command import line
from activities.git.registered_repository import common_directory, references
from activities.host import checkouts
from activities.store import branch_rows, job_rows
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from bridge.machine.step_messages import Step, unheard
from bridge.operations.branches import branches, hub_work, merge_offer
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.merges import writer
from bridge.operations.jobs import jobs
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.errors import Commands, NotFoundError, RefusedError, ServiceError, UsageError, with_nearest
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.rows import TaskRecord
from workflows.model.states import JobState
from workflows.policy.tree_states import TreeState, tree_state
from workflows.text.durations import DurationError, abbreviate, parse_duration
from workflows.text.plurals import quantity

DROPPABLE = (TreeState.DONE, TreeState.CUT_SHORT, TreeState.FAILED, TreeState.CANCELLED)
"""The states of trees that can't be re-opened; all others may still need their branches."""

_OURS = re.compile(r"refs/heads/service/(?:job|task)-([0-9a-v]{12})(?![0-9a-v])")
_PEOPLES = ("--not", "HEAD", "--exclude=service/*", "--branches", "--tags")
"""Arguments of `git rev-list` that exclude commits of people's branches and tags."""


@dataclass(frozen=True)
class UnmergedWork:
    """The branches of one tree that have commits which no branch of people contains."""

    root_job_id: str
    repo: str
    title: str
    state: TreeState
    ended_at: float
    branches: tuple[str, ...]
    commits: int
    bytes: int
    """Size of the objects that only these branches need, on the disk."""


@dataclass(frozen=True)
class Choice:
    """A filter of trees by repository, job, age and state; a tree must match all given conditions."""

    repo: str | None = None
    trees: tuple[str, ...] = ()
    """One job id of each wanted tree; any of its jobs."""
    older_than: str | None = None
    """The least time since the tree's end, such as `30d`; since its start if it has not ended."""
    state: str | None = None

    @property
    def is_made(self) -> bool:
        """Return whether the filter has a condition other than the repository."""
        return bool(self.trees or self.older_than or self.state)


SHOWN = 3
"""Branches that a refusal names."""


@dataclass(frozen=True)
class Dropped:
    """A removed branch, and the commit it pointed to."""

    job_id: str
    branch: str
    head_sha: str
    path: str
    merged: bool
    back: str
    """The command that restores the branch."""


@dataclass(frozen=True)
class DroppedWork:
    """The outcome of a removal."""

    dropped: tuple[Dropped, ...]
    problems: tuple[str, ...]
    """The reasons why branches of a tree were not removed."""


@dataclass(frozen=True)
class DroppedBranches(Dropped):
    """The removed branches, and the task's branch if it has to stay."""

    root_job_id: str
    dropped: tuple[Dropped, ...]
    stays: str
    """The task's branch if it was kept because no other branch has its commits; else empty."""

    @property
    def ways_on(self) -> tuple[str, ...]:
        """Return the commands that merge the kept task branch, then the command that drops it anyway; none if no branch
        was kept.
        """
        root = self.root_job_id
        ways = (f"service job merge {root} --into-mine", f"service job drop {root}", f"service job drop {root} --force")
        return ways if self.stays else ()


def drop(service: Service, job_id: str, *, actor: str, force: bool) -> DroppedBranches:
    """Remove the branch of a leg, or, by the job id of its root, every branch of a tree (ruling O6)."""
    if jobs.get(service, job_id).parent_job_id is None:
        return _drop_tree(service, job_id, actor, force)
    return _drop_leg(service, job_id, actor, force)


def _drop_leg(service: Service, job_id: str, actor: str, force: bool) -> DroppedBranches:
    """Remove a leg's branch if it is merged, or in any case with `force`; dependent jobs then run without its work."""
    job = writer(service, job_id)
    tree = branches.of_tree(service, job_id, typed=_command(job_id, force=force), fresh=True)
    path = Path(tree.path)
    leg = next(each for each in tree.legs if each.job_id == job_id)
    busy = [each for each in tree.legs if each.branch == leg.branch and each.state is BranchState.RUNNING]
    if busy or leg.state is BranchState.WAITING:
        raise RefusedError(f"{job_id} is still {job.state}: its branch is in use", f"service job kill {job_id}")
    if not leg.exists:
        raise NotFoundError(f"{job_id} has no branch (any more)", f"service job branches {tree.root_job_id}")
    if leg.state is BranchState.UNMERGED and not force:
        merge = [leg.merge] if leg.merge else []
        raise RefusedError(
            f"{leg.branch} has {quantity(leg.ahead or 0, 'commit')} not in {tree.task_branch}; dropping it loses them",
            Commands(*merge, f"service job drop {job_id} --force"),
        )
    _refuse_in_use(path, leg.branch)
    return _answer(tree, _remove(service, tree, [leg], None, actor))


def _drop_tree(service: Service, job_id: str, actor: str, force: bool) -> DroppedBranches:
    """Remove every branch of a tree or, without `force`, none if one of them is unmerged.

    The task's branch stays, unless forced, until its work is in the branch that is checked out.
    """
    tree = branches.of_tree(service, job_id, typed=_command(job_id, force=force), fresh=True)
    path = Path(tree.path)
    legs = list({leg.branch: leg for leg in tree.legs if leg.exists}.values())
    if busy := [leg.job_id for leg in tree.legs if leg.state in {BranchState.RUNNING, BranchState.WAITING}]:
        raise RefusedError(f"{busy[0]} still works on its branch", f"service job kill {tree.root_job_id}")
    head = tree.head if tree.owns_task_branch else None
    if not legs and head is None:
        raise NotFoundError(f"{tree.root_job_id} has no branch (any more)", f"service job branches {tree.root_job_id}")
    stays = "" if force or head is None or git_branches.contains(path, "HEAD", head) else tree.task_branch
    if not force:
        _refuse_lost(service, path, tree, legs, stays)
    head = None if stays else head
    for branch in (*(leg.branch for leg in legs), *([tree.task_branch] if head else [])):
        _refuse_in_use(path, branch)
    return _answer(tree, _remove(service, tree, legs, head, actor), stays)


def _command(job_id: str, *, force: bool) -> str:
    return f"service job drop {job_id}{' --force' if force else ''}"


def _answer(tree: Branches, dropped: Sequence[Dropped], stays: str = "") -> DroppedBranches:
    return DroppedBranches(**asdict(dropped[0]), root_job_id=tree.root_job_id, dropped=tuple(dropped), stays=stays)


def _refuse_lost(service: Service, path: Path, tree: Branches, legs: Sequence[LegBranch], stays: str) -> None:
    lost = [
        leg for leg in legs if leg.state is BranchState.UNMERGED and not git_branches.contains(path, "HEAD", leg.branch)
    ]
    if tree.line and tree.head and git_branches.contains(path, tree.head, tree.line):  # the result was applied
        lost = [leg for leg in lost if leg.job_state is JobState.SUCCEEDED]
    if not lost and (legs or not stays):
        return
    kept, root = [*(leg.branch for leg in lost), *([stays] if stays else [])], tree.root_job_id
    taken = merge_offer.on_line(tree) if tree.line else [leg for leg in lost if not leg.objection]
    helps = bool(stays) or any(leg in taken and leg.merge for leg in lost)
    out = merge_offer.missing(merge_offer.offer(service, jobs.tree(service, root), tree), tree)
    raise RefusedError(
        f"dropping {root} loses unmerged commits on {quantity(len(kept), 'branch', 'branches')}: "
        f"{', '.join(kept[:SHOWN])}{', …' if len(kept) > SHOWN else ''}",
        Commands(
            *([f"service job merge {root} --into-mine{merge_offer.without(out)}"] if helps else []),
            f"service job branches {root}",
            f"service job drop {root} --force",
        ),
    )


def _refuse_in_use(path: Path, branch: str) -> None:
    if where := git_branches.checkout_of(path, branch):
        raise RefusedError(f"{branch} is checked out in {where}", branches.leave(where))


def _remove(service: Service, tree: Branches, legs: Sequence[LegBranch], head: str | None, actor: str) -> list[Dropped]:
    """Remove the branches of these legs, and the task's branch with its head. Remove them at the hub first, because
    other hosts fetch from it.
    """
    path, repo = Path(tree.path), repo_rows.must_get(service.store, tree.repo)
    dropping = [(leg.job_id, leg.branch, leg.head_sha or "", leg.state is not BranchState.UNMERGED) for leg in legs]
    dropping += [(tree.root_job_id, tree.task_branch, head, False)] if head else []
    gone = list[Dropped]()
    for job_id, branch, tip, is_merged in dropping:
        merged = is_merged or git_branches.contains(path, "HEAD", tip)
        back = hub_work.restore(service, repo, branch, tip) or branches.restore(tree.path, branch, tip)
        gone.append(Dropped(job_id, branch, tip, tree.path, merged, back))
        # Before it is done: a branch that vanishes without a record counts as lost.
        event = BranchEvent(actor=actor, branch=branch, head_sha=tip, task_branch=tree.task_branch, merged=merged)
        message = f"{actor} dropped {branch} ({'merged' if merged else 'not merged'}); it was at {tip}"
        branch_rows.record(service.store, BranchEventKind.DROPPED, job_id, event, message)
    hub_work.remove(service, repo, [name for each in gone for name in (each.branch, f"{each.branch}{hub.AT_HOST}*")])
    for dropped in gone:
        git_branches.delete(path, dropped.branch, dropped.head_sha)
    return gone


def find_unmerged(service: Service, choice: Choice, step: Step = unheard) -> list[UnmergedWork]:
    """Return the unmerged work of these trees on this host, the largest first."""
    state, before = _state(choice.state), _before(choice.older_than)
    wanted = {_over(service, tree) for tree in choice.trees}
    known = [repos.get(service, choice.repo)] if choice.repo else checkouts.every_here(service)
    works = list[UnmergedWork]()
    for repo in (repo for repo in known if repo.host == service.settings.host):
        step(f"looking at {repo.name}")
        for task, tips in _of_repository(service, repo):
            is_meant = task.root_job_id in wanted if wanted else True
            age = task.ended_at or task.opened_at
            if is_meant and state in (None, _state_of(task)) and age < before:
                works += _unmerged_work(repo, task, tips)
    return sorted(works, key=lambda work: (-work.bytes, work.root_job_id))


def remaining(service: Service, works: Sequence[UnmergedWork]) -> list[UnmergedWork]:
    """Return those of the trees of which a branch still exists."""
    paths = {repo.name: Path(repo.path) for repo in checkouts.every_here(service)} if works else {}
    there: dict[str, Collection[str]] = {}
    for name in {work.repo for work in works} & paths.keys():
        with suppress(ServiceError):
            there[name] = references(common_directory(paths[name]))
    return [work for work in works if any(f"refs/heads/{name}" in there.get(work.repo, ()) for name in work.branches)]


def drop_unmerged(service: Service, chosen: Sequence[UnmergedWork], *, actor: str) -> DroppedWork:
    """Remove every branch of these trees, merged or not. A tree that was opened again meanwhile keeps its branches."""
    dropped, problems = list[Dropped](), list[str]()
    for work in chosen:
        try:
            _over(service, work.root_job_id)
            dropped += drop(service, work.root_job_id, actor=actor, force=True).dropped
        except ServiceError as error:
            problems.append(f"{work.root_job_id}: {error.message}")
    return DroppedWork(tuple(dropped), tuple(problems))


def _over(service: Service, job_id: str) -> str:
    """Return the root of the job's tree. Raise if the tree is not over."""
    tree = jobs.tree(service, job_id)
    root = tree.task.root_job_id
    if tree.state not in DROPPABLE:
        raise RefusedError(f"{root} is {tree.state.words}: it may still need its branches", f"service job tree {root}")
    return root


def _state(name: str | None) -> TreeState | None:
    if name is None or name in DROPPABLE:
        return TreeState(name) if name else None
    error = UsageError(f"branches of tasks that are {name!r} are not dropped; only of {', '.join(DROPPABLE)}")
    raise with_nearest(error, name, DROPPABLE)


def _before(older_than: str | None) -> float:
    try:
        return time.time() - (parse_duration(abbreviate(older_than)) if older_than else 0.0)
    except DurationError as error:
        raise UsageError(f"--older-than {error}", "service repo sweep --older-than 30d") from None


def _state_of(task: TaskRecord) -> TreeState:
    return tree_state(task.state, task.waits_for, running=False)


def _of_repository(service: Service, repo: Repo) -> Iterator[tuple[TaskRecord, dict[str, str]]]:
    """Yield each tree that is over and has branches here, with their commits by name."""
    of_trees: dict[str, dict[str, str]] = {}
    with suppress(ServiceError):  # then those of other hosts are missing
        hub_work.fetch_every(service, repo)
    try:
        refs = references(common_directory(Path(repo.path)))
    except ServiceError:
        return  # a missing checkout: `service doctor` reports it
    for ref, commit in refs.items():
        if ours := _OURS.match(ref):
            of_trees.setdefault(f"job-{ours[1]}", {})[ref.removeprefix("refs/heads/")] = commit
    for root, task in job_rows.tasks_of(service.store, of_trees).items():
        if task.repo == repo.name and _state_of(task) in DROPPABLE:
            yield task, of_trees[root]


def _unmerged_work(repo: Repo, task: TaskRecord, branches: dict[str, str]) -> Iterator[UnmergedWork]:
    """Yield the tree's branches if people's branches lack some of their commits."""
    path, tips = Path(repo.path), sorted(set(branches.values()))
    if not git_branches.has_commits(path):
        return
    commits = int(line(path, "rev-list", "--count", *tips, *_PEOPLES))
    if commits:
        size = int(line(path, "rev-list", "--disk-usage", "--objects", *tips, *_PEOPLES))
        ended = task.ended_at or task.opened_at
        names = tuple(sorted(branches))
        yield UnmergedWork(task.root_job_id, repo.name, task.title, _state_of(task), ended, names, commits, size)
