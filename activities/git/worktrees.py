"""A worktree per job (rulings I1, I2): made and removed any number of times, whatever was killed in between.

What a job starts from is recorded in the worktree itself, in per-worktree references that vanish with it. The base is
recorded last, so a worktree that has one is complete.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from activities.git.command import GitError, git, line, printable, says_yes
from activities.git.submodules import fill_submodules
from workflows.errors import NotFoundError, RefusedError

BASE_REF = "refs/worktree/service-base"
BRANCH_REF = "refs/worktree/service-branch"
LOCK_FILE = "service-worktrees.lock"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


class RepositoryError(RefusedError):
    """The place is no repository that a worktree can be made from."""

    code = "repository_unusable"


@dataclass(frozen=True)
class Worktree:
    """Where a job works, and the commit it started from. No branch: detached."""

    path: Path
    base: str
    branch: str | None = None


def place(worktrees: Path, name: str) -> Path:
    """The path for a named worktree: directly under the root, never outside it nor inside another (ruling I3)."""
    if len(name) > 200 or not _NAME.fullmatch(name):
        raise RefusedError(f"worktree {name!r} is not a relative name of letters, digits, '.', '_', '-' and '/'")
    return worktrees / name.replace("/", "+")


def add_branch(repo: Path, path: Path, branch: str, base: str) -> Worktree:
    """A worktree on the branch, which is made at `base` unless it is there already (ruling I1)."""
    git(repo, "check-ref-format", f"refs/heads/{branch}")
    with _locked(repo) as lock:
        if (there := _existing(repo, path)) is not None:
            return there
        _remove(repo, path, lock)
        _release_branch(repo, branch, lock)
        start = commit_of(repo, base)
        fresh = not says_yes(repo, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}")
        _add(repo, path, lock, ("-b", branch, str(path), start) if fresh else (str(path), branch))
        git(path, "symbolic-ref", BRANCH_REF, f"refs/heads/{branch}")
        return mark_base(path)


def add_detached(repo: Path, path: Path, base: str) -> Worktree:
    """A worktree at `base`, on no branch (ruling I2)."""
    with _locked(repo) as lock:
        if (there := _existing(repo, path)) is not None:
            return there
        _remove(repo, path, lock)
        _add(repo, path, lock, ("--detach", str(path), commit_of(repo, base)))
        return mark_base(path)


def dispose(repo: Path, path: Path) -> None:
    """No worktree is at the path any more. Branches stay: they hold the work."""
    if not repo.exists():
        _delete(path, registered=False)
        return
    with _locked(repo) as lock:
        _remove(repo, path, lock)


def find(path: Path) -> Worktree | None:
    """The complete worktree at the path, as it was recorded when it was made."""
    if not (path / ".git").is_file():
        return None
    try:
        base = line(path, "rev-parse", "--verify", "--quiet", BASE_REF)
    except GitError:
        return None
    try:
        branch = line(path, "symbolic-ref", "--quiet", BRANCH_REF).removeprefix("refs/heads/")
    except GitError:
        branch = None
    return Worktree(path, base, branch)


def mark_base(path: Path) -> Worktree:
    """What is checked out now is what the job starts from: call it before a run starts, never after (ruling I4)."""
    git(path, "update-ref", BASE_REF, "HEAD")
    worktree = find(path)
    assert worktree is not None
    return worktree


def commit_of(repo: Path, revision: str) -> str:
    """The commit a revision names, or the reason why there is none."""
    try:
        return line(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError:
        if not git(repo, "rev-list", "--all", "--max-count=1"):
            hint = f"git -C {printable(str(repo))} commit --allow-empty -m start"
            raise RepositoryError(f"the repository {printable(str(repo))} has no commit yet", hint) from None
        hint = f"git -C {printable(str(repo))} branch --all"
        raise NotFoundError(f"there is no commit {revision} in {printable(str(repo))}", hint) from None


def common_directory(repo: Path) -> Path:
    """Where the repository keeps what its worktrees share."""
    if not repo.exists():
        raise NotFoundError(f"there is no repository at {printable(str(repo))}: the path is missing")
    try:
        return Path(line(repo, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    except GitError as error:
        hint = f"git -C {printable(str(repo))} init"
        raise RepositoryError(
            f"{printable(str(repo))} is not the root of a git repository: {error.said}", hint
        ) from None


@contextlib.contextmanager
def _locked(repo: Path) -> Iterator[int]:
    """One change of worktrees at a time per repository. Git inherits the lock, so it outlives a killed caller."""
    lock = os.open(common_directory(repo) / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _existing(repo: Path, path: Path) -> Worktree | None:
    worktree = find(path)
    if worktree is not None and common_directory(path) != common_directory(repo):
        raise RefusedError(f"{printable(str(path))} is a worktree of another repository, {common_directory(path)}")
    return worktree


def _add(repo: Path, path: Path, lock: int, arguments: tuple[str, ...]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    git(repo, "worktree", "add", "--quiet", *arguments, holding=(lock,))
    fill_submodules(path, common_directory(repo))


def _remove(repo: Path, path: Path, lock: int) -> None:
    """Also what a killed `worktree add` left half-made, locked or not; `worktree prune` would touch other people's."""
    registered = os.path.realpath(path) in {os.path.realpath(entry) for entry, _ in _entries(repo)}
    _delete(path, registered=registered)
    if registered:
        git(repo, "worktree", "remove", "--force", "--force", str(path), holding=(lock,))
    for record in (common_directory(repo) / "worktrees").glob(f"{path.name}*"):
        if not (record / "gitdir").exists():
            shutil.rmtree(record)


def _entries(repo: Path) -> Iterator[tuple[str, str | None]]:
    """Path and branch of every worktree the repository knows."""
    for record in git(repo, "worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        entry = dict(
            field.decode("utf-8", "surrogateescape").partition(" ")[::2] for field in record.split(b"\0") if field
        )
        if "worktree" in entry:
            yield entry["worktree"], entry.get("branch")


def _release_branch(repo: Path, branch: str, lock: int) -> None:
    """Forget worktrees that hold the branch but are gone; refuse when one is alive."""
    for path, held in _entries(repo):
        if held == f"refs/heads/{branch}":
            if Path(path).exists():
                hint = f"git -C {printable(str(repo))} worktree remove {printable(path)}"
                raise RefusedError(f"branch {branch} is checked out in {printable(path)}", hint)
            git(repo, "worktree", "remove", "--force", "--force", path, holding=(lock,))


def _delete(path: Path, *, registered: bool) -> None:
    """Remove a worktree's files: moved aside first, so that a half-deleted one cannot be mistaken for anything else."""
    aside = path.with_name(f"{path.name}.disposed")
    _delete_tree(aside)
    if not path.exists() and not path.is_symlink():
        return
    is_worktree = registered or (path / ".git").is_file() or not any(path.iterdir())
    if path.is_symlink() or not path.is_dir() or not is_worktree:
        raise RefusedError(f"{printable(str(path))} is not a worktree: it stays as it is")
    path.rename(aside)
    _delete_tree(aside)


def _delete_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except PermissionError:  # tools leave read-only folders behind
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o700)
        shutil.rmtree(path)
