"""Leftovers of killed processes: listed before anything is removed, and never removed if they hold unique work."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from activities.git import git_branches
from activities.git.command import printable
from activities.git.library import library
from activities.git.locks import hold_lock, is_free
from activities.git.registered_repository import common_directory, references
from activities.git.work_folder import delete_later
from activities.git.work_folder.service_git_dir import FOLDER, side_of
from activities.git.work_folder.worktree_changes import look
from activities.git.work_folder.worktrees import BRANCHES_LOCK, Worktree, dispose, find, holders
from workflows.model.errors import ServiceError
from workflows.text.plurals import quantity

STALE_SECONDS = 600.0
OURS = "refs/heads/service/"
LEG_BRANCHES = f"{OURS}job-"

Busy = Callable[[str], bool]
"""Returns whether a job uses, or may soon use, the worktree or branch of this name."""


class LeftoverKind(StrEnum):
    """The kind of a leftover."""

    WORKTREE = "worktree"
    BRANCH = "branch"
    LOCK = "lock"
    REFERENCE = "reference"
    """A reference at the repository's hub. The caller removes it there."""


@dataclass(frozen=True)
class Leftover:
    """A folder, branch or reference that no job owns. With a reason in `keep` it is listed, but not removed."""

    kind: LeftoverKind
    name: str
    keep: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Ground:
    """What to sweep: a repository, and its work folders, whose names begin with `prefix`."""

    repo: Path
    worktrees: Path
    prefix: str
    busy: Busy
    worth_keeping: Callable[[Path, Path], str] = lambda repo, path: worth_keeping(repo, path)
    """Returns why a work folder of the repository must stay; empty if it may be removed."""

    @property
    def sides(self) -> Path:
        """Return the folder with the service's git directories of work folders."""
        return self.worktrees.parent / FOLDER

    @property
    def trash(self) -> Path:
        """Return the folder of work folders that wait for deletion."""
        return self.worktrees.parent / delete_later.FOLDER


def leftovers(ground: Ground) -> list[Leftover]:
    """List everything that no job owns. Change nothing."""
    common = common_directory(ground.repo)
    return [*_worktrees(ground), *_branches(ground), *_locks(ground, common)]


def remove(ground: Ground, leftover: Leftover) -> Leftover:
    """Remove a leftover, unless a reason to keep it has come up. Return it, with that reason."""
    if leftover.keep:
        return leftover
    try:
        match leftover.kind:
            case LeftoverKind.WORKTREE:
                reason = _remove_worktree(ground, Path(leftover.name))
            case LeftoverKind.BRANCH:
                reason = _remove_branch(ground, leftover)
            case LeftoverKind.REFERENCE:
                reason = "it is at the hub"
            case LeftoverKind.LOCK:
                reason = _remove_lock(ground, Path(leftover.name))
    except (ServiceError, OSError) as fault:
        reason = f"it could not be removed: {fault}"
    return replace(leftover, keep=reason)


def _worktrees(ground: Ground) -> Iterator[Leftover]:
    known = {side.name.removesuffix(".git") for side in ground.sides.glob("*.git")}
    there = {path.name for path in ground.worktrees.iterdir()} if ground.worktrees.is_dir() else set()
    for name in sorted(known | there):
        if name.startswith(ground.prefix) and not ground.busy(name):
            path = ground.worktrees / name
            yield Leftover(LeftoverKind.WORKTREE, str(path), ground.worth_keeping(ground.repo, path))
    if ground.trash.is_dir():
        put_away = (path for path in ground.trash.iterdir() if path.name.startswith(ground.prefix))
        yield from (Leftover(LeftoverKind.WORKTREE, str(path)) for path in sorted(put_away))


def worth_keeping(repo: Path, path: Path) -> str:
    """Return why a work folder must stay: it holds unique work, or can't be checked."""
    if path.is_symlink() or not path.is_dir():
        return ""
    if not any(entry.name != ".git" for entry in path.iterdir()):
        return ""
    worktree = find(path)
    if worktree is None:
        half_made = side_of(path).is_dir() and not os.path.lexists(path / ".git")
        return "" if half_made else "it cannot be read as a worktree of the repository: look into it, then delete it"
    try:
        return _only_here(repo, worktree)
    except (ServiceError, OSError) as error:
        return f"it cannot be read: {error}"


def _only_here(repo: Path, worktree: Worktree) -> str:
    seen, path = look(worktree), worktree.path
    if seen.refused is not None:
        return f"its commits were not taken over: {seen.refused.message}"
    if seen.dirty:
        return f"{len(seen.dirty)} uncommitted files"
    ends = [*references_of(repo), worktree.base]
    lost = [each for each in {seen.head, seen.own} if _count_beyond(side_of(path), each, ends)]
    return f"commits on no branch: git -C {printable(str(path))} branch NAME {lost[0]}" if lost else ""


def references_of(repo: Path, besides: str = "refs/none/") -> list[str]:
    """List the commits of the repository's branches and tags, except names that begin with `besides`."""
    known = references(common_directory(repo))
    return [
        commit
        for name, commit in known.items()
        if name.startswith(("refs/heads/", "refs/tags/")) and not name.startswith(besides)
    ]


def _count_beyond(repository: Path, commit: str, ends: list[str]) -> int:
    """Count the commits reachable from `commit` but from none of the ends."""
    pygit2 = library()
    with git_branches.reading(repository) as opened:
        walk = opened.walk(pygit2.Oid(hex=commit))
        for end in set(ends):
            with contextlib.suppress(KeyError, ValueError, pygit2.GitError):
                walk.hide(opened[pygit2.Oid(hex=end)].peel(pygit2.Commit).id)
        return sum(1 for _ in walk)


def _remove_worktree(ground: Ground, path: Path) -> str:
    if path.parent == ground.trash:
        delete_later.delete(path)
        return ""

    def unless() -> str:
        return "a job works there now" if ground.busy(path.name) else ground.worth_keeping(ground.repo, path)

    return dispose(ground.repo, path, unless=unless)


def _branches(ground: Ground) -> Iterator[Leftover]:
    held_in = holders(ground.worktrees)
    for ref, commit in references(common_directory(ground.repo)).items():
        name = ref.removeprefix("refs/heads/")
        if ref.startswith(LEG_BRANCHES) and not ground.busy(name):
            checkout = held_in.get(name) or git_branches.checkout_of(ground.repo, name)
            yield Leftover(
                LeftoverKind.BRANCH,
                name,
                _unmerged_work(ground.repo, commit) or _other_checkout(ground, checkout),
                commit,
            )


def _unmerged_work(repo: Path, commit: str) -> str:
    """Return why a branch must stay: no branch of people or of a task has its commits. Branches of other legs do not
    count.
    """
    elsewhere = [each for name, each in references(common_directory(repo)).items() if _is_peoples(name)]
    count = _count_beyond(repo, commit, elsewhere)
    return quantity(count, "unmerged commit") if count else ""


def _is_peoples(name: str) -> bool:
    return name.startswith("refs/heads/") and not name.startswith(LEG_BRANCHES)


def _other_checkout(ground: Ground, path: Path | None) -> str:
    """Return why a checked-out branch must stay. Ignore the work folder `path`, which is swept first."""
    if path is None or not path.exists():
        return ""
    swept = path.parent.resolve() == ground.worktrees.resolve() and not ground.busy(path.name)
    if swept and not ground.worth_keeping(ground.repo, path):
        return ""
    return f"checked out in {printable(str(path))}"


def _remove_branch(ground: Ground, leftover: Leftover) -> str:
    ground.sides.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(ground.sides / BRANCHES_LOCK):
        checkout = holders(ground.worktrees).get(leftover.name) or git_branches.checkout_of(ground.repo, leftover.name)
        if checkout is not None and checkout.exists():
            return f"checked out in {printable(str(checkout))}"
        if ground.busy(leftover.name):
            return "a job works on it now"
        if reason := _unmerged_work(ground.repo, leftover.commit):
            return reason
        git_branches.delete(ground.repo, leftover.name, leftover.commit)
    return ""


def _locks(ground: Ground, common: Path) -> Iterator[Leftover]:
    for lock in sorted(ground.sides.glob(f"{ground.prefix}*.lock")) + sorted(ground.sides.glob(BRANCHES_LOCK)):
        yield Leftover(LeftoverKind.LOCK, str(lock), "" if is_free(lock) else "held at this moment")
    for lock in sorted((common / "refs/heads/service").glob("**/*.lock")):
        if not ground.busy(f"service/{lock.name}"):
            yield Leftover(LeftoverKind.LOCK, str(lock), _fresh(lock))
    if (checkout := common / "index.lock").exists():
        yield Leftover(LeftoverKind.LOCK, str(checkout), "it is the checkout's own: when no git runs there, rm it")


def _fresh(lock: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime < STALE_SECONDS:
            return "git may be at work: look again in ten minutes"
    return ""


def _remove_lock(ground: Ground, lock: Path) -> str:
    if lock.parent != ground.sides:
        lock.unlink(missing_ok=True)
    elif os.path.lexists(lock):
        with hold_lock(lock):  # this deletes the file
            pass
    return ""
