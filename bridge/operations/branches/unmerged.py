"""Unmerged branches of trees that are over: what they cost, and removing those of the trees a person chooses."""

import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from activities.git import branches as git
from activities.git.command import line
from activities.git.registered_repository import common_directory, references
from activities.host import checkouts
from activities.store import jobs as stored_jobs
from activities.store.registry.repos import Repo
from bridge.machine.progress import Step, unheard
from bridge.operations.branches import drops, hub_work
from bridge.operations.jobs import jobs
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.errors import RefusedError, ServiceError, UsageError, with_nearest
from workflows.model.rows import TaskRecord
from workflows.policy.tree_states import TreeState, tree_state
from workflows.text.durations import DurationError, abbreviated, parse_duration

DROPPABLE = (TreeState.DONE, TreeState.CUT_SHORT, TreeState.FAILED, TreeState.CANCELLED)
"""The states of trees that nothing opens again: all others may still need their branches."""

_OURS = re.compile(r"refs/heads/service/(?:job|task)-([0-9a-v]{12})(?![0-9a-v])")
_PEOPLES = ("--not", "HEAD", "--exclude=service/*", "--branches", "--tags")
"""Arguments of `git rev-list` that leave out what people's branches and tags have."""


@dataclass(frozen=True)
class UnmergedWork:
    """The branches of one tree, with commits that are on no branch of people."""

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
    """The trees whose branches are meant: all conditions together."""

    repo: str | None = None
    trees: tuple[str, ...] = ()
    """Any job of each tree."""
    older_than: str | None = None
    """The least time since their end, as `30d`."""
    state: str | None = None

    @property
    def made(self) -> bool:
        """Return whether it names trees, an age or a state."""
        return bool(self.trees or self.older_than or self.state)


@dataclass(frozen=True)
class DroppedWork:
    """The outcome of a removal."""

    dropped: tuple[drops.Dropped, ...]
    problems: tuple[str, ...]
    """Why branches of a tree stay."""


def find(service: Service, choice: Choice, step: Step = unheard) -> list[UnmergedWork]:
    """Return the unmerged work of these trees on this host, the largest first."""
    state, before = _state(choice.state), _before(choice.older_than)
    wanted = {_over(service, tree) for tree in choice.trees}
    known = [repos.get(service, choice.repo)] if choice.repo else checkouts.every_here(service)
    found = list[UnmergedWork]()
    for repo in (repo for repo in known if repo.host == service.settings.host):
        step(f"looking at {repo.name}")
        for task, branches in _of_repository(service, repo):
            is_meant = task.root_job_id in wanted if wanted else True
            age = task.ended_at or task.opened_at
            if is_meant and state in (None, _state_of(task)) and age < before:
                found += _measured(repo, task, branches)
    return sorted(found, key=lambda work: (-work.bytes, work.root_job_id))


def remaining(service: Service, works: Sequence[UnmergedWork]) -> list[UnmergedWork]:
    """Return those of which a branch still exists."""
    paths = {repo.name: Path(repo.path) for repo in checkouts.every_here(service)} if works else {}
    there: dict[str, Collection[str]] = {}
    for name in {work.repo for work in works} & paths.keys():
        with suppress(ServiceError):
            there[name] = references(common_directory(paths[name]))
    return [work for work in works if any(f"refs/heads/{name}" in there.get(work.repo, ()) for name in work.branches)]


def drop(service: Service, chosen: Sequence[UnmergedWork], *, actor: str) -> DroppedWork:
    """Remove every branch of these trees, merged or not. A tree that was opened again meanwhile keeps its branches."""
    dropped, problems = list[drops.Dropped](), list[str]()
    for work in chosen:
        try:
            _over(service, work.root_job_id)
            dropped += drops.drop(service, work.root_job_id, actor=actor, force=True).dropped
        except ServiceError as error:
            problems.append(f"{work.root_job_id}: {error.message}")
    return DroppedWork(tuple(dropped), tuple(problems))


def _over(service: Service, job_id: str) -> str:
    """Return the root of a tree that is over; refuse any other."""
    tree = jobs.tree(service, job_id)
    root = tree.task.root_job_id
    if tree.state not in DROPPABLE:
        raise RefusedError(f"{root} is {tree.state.words}: it may still need its branches", f"service job tree {root}")
    return root


def _state(name: str | None) -> TreeState | None:
    if name is None or name in DROPPABLE:
        return TreeState(name) if name else None
    error = UsageError(f"branches of trees that are {name!r} are not dropped; only of {', '.join(DROPPABLE)}")
    raise with_nearest(error, name, DROPPABLE)


def _before(older_than: str | None) -> float:
    try:
        return time.time() - (parse_duration(abbreviated(older_than)) if older_than else 0.0)
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
        found = references(common_directory(Path(repo.path)))
    except ServiceError:
        return  # a missing checkout: `service doctor` reports it
    for ref, commit in found.items():
        if ours := _OURS.match(ref):
            of_trees.setdefault(f"job-{ours[1]}", {})[ref.removeprefix("refs/heads/")] = commit
    for root, task in stored_jobs.tasks_of(service.store, of_trees).items():
        if task.repo == repo.name and _state_of(task) in DROPPABLE:
            yield task, of_trees[root]


def _measured(repo: Repo, task: TaskRecord, branches: dict[str, str]) -> Iterator[UnmergedWork]:
    """Yield the tree's work, if people's branches lack some of it."""
    path, tips = Path(repo.path), sorted(set(branches.values()))
    if not git.has_commits(path):
        return
    commits = int(line(path, "rev-list", "--count", *tips, *_PEOPLES))
    if commits:
        size = int(line(path, "rev-list", "--disk-usage", "--objects", *tips, *_PEOPLES))
        ended = task.ended_at or task.opened_at
        names = tuple(sorted(branches))
        yield UnmergedWork(task.root_job_id, repo.name, task.title, _state_of(task), ended, names, commits, size)
