"""A work folder per job (rulings I1, I2, N3). Making and removing are idempotent, whatever was killed in between.

For the agent, a folder is a separate repository (`agent_git_dir`). The service's own git directory of it
(`service_git_dir`) is out of the agent's reach. The registered repository gets only the job's branch.
"""

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.git import git_branches
from activities.git.command import printable
from activities.git.library import RepositoryError, keep_open
from activities.git.locks import clear_ref_lock, hold_lock
from activities.git.registered_repository import common_directory, git_directory
from activities.git.remotes import remotes
from activities.git.work_folder import agent_git_dir, delete_later, service_git_dir
from activities.git.work_folder.agent_git_dir import NONE
from activities.git.work_folder.checkout import fill_all, refresh
from activities.git.work_folder.service_git_dir import FOLDER, FolderRecord, find_record, lock_of, read_record, side_of
from workflows.contract.worktree_names import RULE, stays_below
from workflows.model.errors import NotFoundError, RefusedError

BRANCHES_LOCK = "branches.lock"
LONGEST_FOLDER = 220
"""Longest name of a work folder, in bytes: its lock and its name in the trash are longer."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class Worktree:
    """A job's work folder, and the commit it started from. Without a branch, HEAD is detached."""

    path: Path
    base: str
    branch: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Branches of the job's repository besides those of the registered repository, by name (ruling O4)."""


def worktree_path(worktrees: Path, name: str) -> Path:
    """Return the path of a named worktree: directly below the root, never outside it nor inside another (ruling I3).

    All names that the contract allows work; a name too long for a folder ends in a digest.
    """
    if not stays_below(name):
        raise RefusedError(f"worktree {name!r} {RULE}")
    folder = name.replace("/", "+")
    if len(folder) > LONGEST_FOLDER:
        folder = f"{folder[: LONGEST_FOLDER - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return worktrees / folder


def worktree_name(repo: str, work: str) -> str:
    """Return the name of a worktree of a registered repository."""
    return f"{repo.replace('/', '--')}/{work}"


def worktree_prefix(repo: str) -> str:
    """Return the prefix of the folders of a repository's worktrees."""
    return worktree_name(repo, "").replace("/", "+")


@keep_open()
def add_branch(repo: Path, path: Path, branch: str, base: str, names: Mapping[str, str] = NONE) -> Worktree:
    """Make a work folder on the branch; a missing branch is made at `base` (ruling I1)."""
    git_branches.check_name(repo, branch)
    with _at(repo, path) as common:
        if (there := _existing(repo, path, common)) is not None:
            return there
        with hold_lock(side_of(path).parent / BRANCHES_LOCK):
            delete_later.in_background(*_put_away(path))
            _check_free(repo, path, branch)
            clear_ref_lock(common, branch)
            start = git_branches.tip(repo, branch) or _start_branch(repo, branch, base)
            service_git_dir.begin(repo, side_of(path))
            (side_of(path) / "branch").write_text(branch)
        return _make(repo, common, Worktree(path, start, branch, dict(names)))


@keep_open()
def add_detached(repo: Path, path: Path, base: str, names: Mapping[str, str] = NONE) -> Worktree:
    """Make a work folder at `base`, on no branch (ruling I2)."""
    with _at(repo, path) as common:
        if (there := _existing(repo, path, common)) is not None:
            return there
        delete_later.in_background(*_put_away(path))
        start = commit_of(repo, base)
        service_git_dir.begin(repo, side_of(path))
        return _make(repo, common, Worktree(path, start, names=dict(names)))


def dispose(repo: Path, path: Path, *, unless: Callable[[], str] = str, later: bool = False) -> str:
    """Remove the work folder, unless `unless` returns a reason; return the reason. Branches stay, with the job's
    commits.

    Its files are deleted at once, or in the background if `later`.
    """
    if not side_of(path).parent.exists():
        if not os.path.lexists(path):
            return ""
        side_of(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(lock_of(path)):
        if repo.exists() and (reason := unless()):
            return reason
        gone = _put_away(path)
    (delete_later.in_background if later else delete_later.delete)(*gone)
    return ""


def repair(repo: Path, path: Path) -> bool:
    """Point the work folder to the repository's current path, whose objects it borrows. Return whether the repository
    had moved.

    The agent's `.git` is not made again: its commits may exist nowhere else.
    """
    known = find_record(path)
    if known is None or (known.common / "objects").is_dir() or known.common == (common := common_directory(repo)):
        return False
    service_git_dir.lend(common, side_of(path))
    service_git_dir.write_record(path, replace(known, repo=repo, common=common))
    return True


def find(path: Path) -> Worktree | None:
    """Return the work folder at the path, read from its record; None if it is missing or incomplete."""
    known = find_record(path) if path.is_dir() and not path.is_symlink() else None
    return Worktree(path, known.base, known.branch, known.names) if known else None


def mark_base(path: Path, names: Mapping[str, str] = NONE) -> Worktree:
    """Start the next job in this folder from the branch's tip. Call this before a run starts.

    Refuse if the previous agent left commits that were not taken over: they would be lost.
    """
    known = service_git_dir.record_of(path)
    start = (git_branches.tip(known.repo, known.branch) if known.branch else None) or known.base
    if left := _only_there(known.repo, path, known.branch):
        where = printable(str(path))
        raise RefusedError(f"{where} holds the commit {left}, which was not taken over", f"git -C {where} log {left}")
    refresh(side_of(path), start)
    return start_from(known.repo, Worktree(path, known.base, known.branch, dict(names)), start)


def _only_there(repo: Path, path: Path, branch: str | None) -> str:
    """Return a commit that exists only in the agent's `.git`, not in the repository; empty if there is none."""
    agents = agent_git_dir.read(path, branch)
    named = (each for each in (agents.head, agents.branch) if each)
    return next((each for each in named if git_branches.commit(repo, each) is None), "")


def start_from(repo: Path, worktree: Worktree, commit: str) -> Worktree:
    """Record the job's starting commit, and make a fresh `.git` for the agent. Never call this once its run has
    begun.
    """
    common = common_directory(repo)
    side, branch, names = side_of(worktree.path), worktree.branch, dict(worktree.names)
    agent_git_dir.furnish(repo, common, worktree.path, side, commit, branch, names)
    record = FolderRecord(repo, common, commit, branch, git_branches.tree_of(repo, commit), names)
    service_git_dir.write_record(worktree.path, record)
    service_git_dir.keep_built_on(worktree.path, None)
    return replace(worktree, base=commit)


def commit_of(repo: Path, revision: str) -> str:
    """Return the commit that a revision names; raise with the reason if there is no such commit."""
    if commit := git_branches.commit(repo, revision):
        return commit
    if not git_branches.has_commits(repo):
        hint = f"git -C {printable(str(repo))} commit --allow-empty -m start"
        raise RepositoryError(f"the repository {printable(str(repo))} has no commit yet", hint)
    hint = f"git -C {printable(str(repo))} branch --all"
    raise NotFoundError(f"there is no commit {revision} in {printable(str(repo))}", hint)


def base_of(repo: Path, ref: str) -> str:
    """Return the commit that a person names as a base, which may be a tag."""
    if commit := git_branches.commit(repo, ref):
        return commit
    if kind := git_branches.kind_of(repo, ref):
        hint = f"git -C {shlex.quote(printable(str(repo)))} show --stat {shlex.quote(ref)}"
        raise RefusedError(f"{ref!r} is a {kind} in {printable(str(repo))}, not a commit", hint)
    return commit_of(repo, ref)


def starting_commit(repo: Path, base: str, host: str, again: str) -> str:
    """Return the base commit of a tree or a run, or HEAD if it has no base. Raise if this host lacks the commit (ruling
    O1).
    """
    if not base:
        return commit_of(repo, "HEAD")
    if commit := git_branches.commit(repo, base):
        return commit
    fetch = f"git -C {shlex.quote(str(repo))} fetch {next(iter(remotes(repo)), 'WHERE_IT_IS')} {base}"
    where = f"{printable(str(repo))} on {host}"
    message = f"the commit {base} that this work begins from is not in {where}"
    raise NotFoundError(message, f"on {host}: {fetch}; then: {again}")


def tip(repo: Path) -> str:
    """Return the commit that is checked out, from git's own files if possible: the library takes longer."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        own = git_directory(repo)
        head = (own / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        commit = head if branch == head else (own / branch).read_text().strip()
        if _COMMIT.fullmatch(commit):
            return commit
    return commit_of(repo, "HEAD")


@contextlib.contextmanager
def _at(repo: Path, path: Path) -> Iterator[Path]:
    """Allow one caller at a time per work folder."""
    common = common_directory(repo)
    side_of(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(lock_of(path)):
        yield common


def _existing(repo: Path, path: Path, common: Path) -> Worktree | None:
    if find_record(path) is None:
        return None
    moved = repair(repo, path)
    there, known = find(path), find_record(path)
    if there is None or known is None:
        return None
    if known.common != common:
        raise RefusedError(f"{printable(str(path))} is a worktree of another repository, {known.common}")
    if not os.path.lexists(path / ".git") or (moved and not _only_there(repo, path, there.branch)):
        start = (git_branches.tip(repo, there.branch) if there.branch else None) or there.base
        agent_git_dir.furnish(repo, common, path, side_of(path), start, there.branch, there.names)
    return there


def _make(repo: Path, common: Path, worktree: Worktree) -> Worktree:
    """Write the work folder's files."""
    worktree.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    worktree.path.mkdir(mode=0o700)
    fill_all(common, worktree.path, side_of(worktree.path), worktree.base)
    return start_from(repo, worktree, worktree.base)


def _start_branch(repo: Path, branch: str, base: str) -> str:
    start = commit_of(repo, base)
    git_branches.move(repo, branch, start, None, "service: a job begins")
    return start


def _check_free(repo: Path, path: Path, branch: str) -> None:
    """Raise if the branch is checked out elsewhere. A missing work folder does not count."""
    where = git_branches.checkout_of(repo, branch)
    hint = f"git -C {printable(str(repo))} worktree remove {printable(str(where))}"
    if where is None and (where := _holder(path, branch)) is not None:
        hint = "service repo sweep"
    if where is not None:
        raise RefusedError(f"branch {branch} is checked out in {printable(str(where))}", hint)


def _holder(path: Path, branch: str) -> Path | None:
    """Find another work folder that is on the branch."""
    for side in side_of(path).parent.glob("*.git"):
        other = path.with_name(side.name.removesuffix(".git"))
        if other != path and other.exists() and _branch_of(side) == branch:
            return other
    return None


def _branch_of(side: Path) -> str | None:
    known = read_record(side)
    if known:
        return known.branch
    with contextlib.suppress(OSError):
        return (side / "branch").read_text()
    return None


def holders(worktrees: Path) -> dict[str, Path]:
    """Map the branches that existing work folders in `worktrees` are on to the folders' paths."""
    folders = {}
    for side in (worktrees.parent / FOLDER).glob("*.git"):
        branch, path = _branch_of(side), worktrees / side.name.removesuffix(".git")
        if branch and path.exists():
            folders[branch] = path
    return folders


def _put_away(path: Path) -> list[Path]:
    """Move the work folder and its side to the trash, complete or not. Return their new paths. Refuse a foreign
    folder.
    """
    side, folder = side_of(path), path.is_dir() and not path.is_symlink()
    gone = []
    if os.path.lexists(path):
        if not side.is_dir() and (not folder or any(path.iterdir())):
            where = printable(str(path))
            raise RefusedError(f"{where} is not a worktree of this service: it stays as it is", f"ls -la {where}")
        if folder:
            gone.append(delete_later.put_away(path.parent.parent / delete_later.FOLDER, path))
        else:  # the agent put something else in its place
            path.unlink()
    if os.path.lexists(side):  # last: the side proves that the folder is the service's
        gone.append(delete_later.put_away(path.parent.parent / delete_later.FOLDER, side))
    return gone
