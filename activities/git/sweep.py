"""What killed processes left behind: listed before anything is removed, and never work that is nowhere else."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from activities.git.command import GitError, git, line, paths, printable
from activities.git.locks import held, is_free
from activities.git.worktrees import (
    ASIDE,
    BASE_REF,
    LOCK_FILE,
    LOCK_PREFIX,
    commit_of,
    common_directory,
    dispose,
    entries,
    find,
)
from workflows.model.errors import ServiceError

STALE_SECONDS = 600.0
LEG_BRANCHES = "refs/heads/service/job-"

Busy = Callable[[str], bool]
"""Whether a job is, or may soon be, at work under this name of a worktree or branch."""


class Kind(StrEnum):
    """What was left."""

    WORKTREE = "worktree"
    BRANCH = "branch"
    LOCK = "lock"


@dataclass(frozen=True)
class Leftover:
    """One thing without an owner. With a reason to keep it, it is only shown."""

    kind: Kind
    name: str
    keep: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Ground:
    """Where to look: a repository, and the worktrees of it that are ours, which begin with `prefix`."""

    repo: Path
    worktrees: Path
    prefix: str
    busy: Busy


def leftovers(ground: Ground) -> list[Leftover]:
    """Everything that no job owns any more. Changes nothing."""
    common = common_directory(ground.repo)
    return [*_worktrees(ground), *_branches(ground), *_locks(ground, common)]


def remove(ground: Ground, leftover: Leftover) -> Leftover:
    """Remove it, unless there is a reason not to by now; then it comes back with the reason."""
    if leftover.keep:
        return leftover
    try:
        match leftover.kind:
            case Kind.WORKTREE:
                reason = _remove_worktree(ground, Path(leftover.name))
            case Kind.BRANCH:
                reason = _remove_branch(ground, leftover)
            case Kind.LOCK:
                reason = _remove_lock(ground, Path(leftover.name))
    except (ServiceError, OSError) as fault:
        reason = f"it could not be removed: {fault}"
    return replace(leftover, keep=reason)


def _worktrees(ground: Ground) -> Iterator[Leftover]:
    root = ground.worktrees.resolve()
    known = {Path(entry).name for entry in entries(ground.repo) if Path(entry).parent.resolve() == root}
    there = {path.name for path in root.iterdir()} if root.is_dir() else set()
    for name in sorted({name.removesuffix(ASIDE) for name in known | there}):
        if name.startswith(ground.prefix) and not ground.busy(name):
            path = ground.worktrees / name
            yield Leftover(Kind.WORKTREE, str(path), worth_keeping(ground.repo, path, known=name in known))


def worth_keeping(repo: Path, path: Path, *, known: bool = True) -> str:
    """Why a worktree must stay: what is in it is nowhere else, or nobody can tell."""
    if not path.exists():
        return _commit_of_the_gone(repo, path)
    if not any(entry.name != ".git" for entry in path.iterdir()):
        return ""
    if not known or find(path) is None:
        return "it cannot be read as a worktree of the repository: look into it, then delete it"
    try:
        status = ("--porcelain", "--untracked-files=all", "--ignore-submodules=none", "--no-renames", "-z")
        if changes := paths(git(path, "status", *status)):
            return f"{len(changes)} uncommitted files"
        only_here = ("rev-list", "--max-count=1", "HEAD", "--not", BASE_REF, "--branches", "--tags")
        return f"commits on no branch: git -C {printable(str(path))} branch NAME" if git(path, *only_here) else ""
    except GitError as error:
        return f"it cannot be read: {error.said}"


def _commit_of_the_gone(repo: Path, path: Path) -> str:
    """A worktree without a folder may be the last thing that holds a commit."""
    for record in (common_directory(repo) / "worktrees").glob(f"{path.name}*"):
        if (record / "gitdir").is_file() and (record / "gitdir").read_text().strip() == str(path / ".git"):
            base, head = (f"worktrees/{record.name}/{ref}" for ref in (BASE_REF, "HEAD"))
            commit = commit_of(repo, head)
            if git(repo, "rev-list", "--max-count=1", head, "--not", base, "--branches", "--tags"):
                return f"its commit {commit} is on no branch: git -C {printable(str(repo))} branch NAME {commit}"
    return ""


def _remove_worktree(ground: Ground, path: Path) -> str:
    def unless() -> str:
        if ground.busy(path.name):
            return "a job works there now"
        known = any(Path(entry).resolve() == path.resolve() for entry in entries(ground.repo))
        return worth_keeping(ground.repo, path, known=known)

    return dispose(ground.repo, path, unless=unless)


def _branches(ground: Ground) -> Iterator[Leftover]:
    listing = git(ground.repo, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/service/")
    held_in = {branch: path for path, branch in entries(ground.repo).items() if branch}
    for entry in listing.decode("utf-8", "surrogateescape").splitlines():
        commit, _, ref = entry.partition(" ")
        if ref.startswith(LEG_BRANCHES) and not ground.busy(ref.removeprefix("refs/heads/")):
            name = ref.removeprefix("refs/heads/")
            keep = _unmerged(ground.repo, commit) or _held(ground, held_in.get(ref))
            yield Leftover(Kind.BRANCH, name, keep, commit)


def _unmerged(repo: Path, commit: str) -> str:
    """Why a branch must stay: no branch of people or of a task has its commits. Other legs' branches do not count."""
    elsewhere = ("--not", f"--exclude={LEG_BRANCHES}*", "--exclude=service/job-*", "--branches")
    count = int(line(repo, "rev-list", "--count", commit, *elsewhere))
    return f"{count} commits that are merged nowhere" if count else ""


def _held(ground: Ground, path: str | None) -> str:
    """Why a checked-out branch must stay; a worktree that is itself removed first is no reason."""
    if path is None or not Path(path).exists():
        return ""
    swept = Path(path).parent.resolve() == ground.worktrees.resolve() and not ground.busy(Path(path).name)
    if swept and not worth_keeping(ground.repo, Path(path), known=True):
        return ""
    return f"checked out in {printable(path)}"


def _remove_branch(ground: Ground, leftover: Leftover) -> str:
    ref = f"refs/heads/{leftover.name}"
    with held(common_directory(ground.repo) / LOCK_FILE):
        for path, branch in entries(ground.repo).items():
            if branch == ref and Path(path).exists():
                return f"checked out in {printable(path)}"
        if ground.busy(leftover.name):
            return "a job works on it now"
        if reason := _unmerged(ground.repo, leftover.commit):
            return reason
        git(ground.repo, "update-ref", "-d", ref, leftover.commit)
    return ""


def _locks(ground: Ground, common: Path) -> Iterator[Leftover]:
    for lock in sorted(common.glob(f"{LOCK_PREFIX}*.lock")) + sorted(common.glob(LOCK_FILE)):
        yield Leftover(Kind.LOCK, str(lock), "" if is_free(lock) else "held at this moment")
    for lock in sorted((common / "worktrees").glob(f"{ground.prefix}*/*.lock")):
        if not ground.busy(lock.parent.name):
            yield Leftover(Kind.LOCK, str(lock), _fresh(lock))
    for lock in sorted((common / "refs/heads/service").glob("**/*.lock")):
        if not ground.busy(f"service/{lock.name}"):
            yield Leftover(Kind.LOCK, str(lock), _fresh(lock))
    if (checkout := common / "index.lock").exists():
        yield Leftover(Kind.LOCK, str(checkout), "it is the checkout's own: when no git runs there, rm it")


def _fresh(lock: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime < STALE_SECONDS:
            return "git may be at work: look again in ten minutes"
    return ""


def _remove_lock(ground: Ground, lock: Path) -> str:
    if lock.parent != common_directory(ground.repo):
        lock.unlink(missing_ok=True)
    elif lock.exists():
        with held(lock):  # takes the file away
            pass
    return ""
