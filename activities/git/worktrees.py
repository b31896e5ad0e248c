"""A worktree per job (rulings I1, I2): made and removed any number of times, whatever was killed in between.

What a job starts from is recorded in the worktree itself, in per-worktree references that vanish with it. The base is
recorded last, so a worktree that has one is complete.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from activities.git.command import GitError, git, line, printable, says_yes
from activities.git.locks import clear_ref_lock, held
from activities.git.submodules import fill_submodules
from workflows.contract.worktree_names import RULE, stays_below
from workflows.model.errors import NotFoundError, RefusedError

BASE_REF = "refs/worktree/service-base"
BRANCH_REF = "refs/worktree/service-branch"
LOCK_FILE = "service-worktrees.lock"
LOCK_PREFIX = "service-worktree-"
ASIDE = ".disposed"

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
LONGEST_FOLDER = 220
"""Bytes of a worktree's folder name: what is built from it (its lock, its name while it is removed) is one too."""


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
    """The path for a named worktree: directly under the root, never outside it nor inside another (ruling I3).

    Every name that the contract takes is taken; what is too long for a folder ends in a digest.
    """
    if not stays_below(name):
        raise RefusedError(f"worktree {name!r} {RULE}")
    folder = name.replace("/", "+")
    if len(folder) > LONGEST_FOLDER:
        folder = f"{folder[: LONGEST_FOLDER - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return worktrees / folder


def worktree_name(repo: str, work: str) -> str:
    """What a worktree of a registered repository is called."""
    return f"{repo.replace('/', '--')}/{work}"


def worktree_prefix(repo: str) -> str:
    """How the folders of a repository's worktrees begin."""
    return worktree_name(repo, "").replace("/", "+")


def add_branch(repo: Path, path: Path, branch: str, base: str) -> Worktree:
    """A worktree on the branch, which is made at `base` unless it is there already (ruling I1)."""
    with _at(repo, path) as (common, lock):
        git(repo, "check-ref-format", f"refs/heads/{branch}")
        if (there := _existing(repo, path, common)) is not None:
            return there
        with held(common / LOCK_FILE) as changing:
            clear_ref_lock(common, branch)
            known = _remove(repo, path, common, changing)
            _release_branch(repo, branch, known, changing)
            fresh = not says_yes(repo, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}")
            start = commit_of(repo, base if fresh else f"refs/heads/{branch}")
            _register(repo, path, ("-b", branch, str(path), start) if fresh else (str(path), branch), changing)
        _fill(path, common, lock)
        git(path, "symbolic-ref", BRANCH_REF, f"refs/heads/{branch}")
        return _mark(Worktree(path, start, branch))


def add_detached(repo: Path, path: Path, base: str) -> Worktree:
    """A worktree at `base`, on no branch (ruling I2)."""
    with _at(repo, path) as (common, lock):
        if (there := _existing(repo, path, common)) is not None:
            return there
        with held(common / LOCK_FILE) as changing:
            _remove(repo, path, common, changing)
            start = commit_of(repo, base)
            _register(repo, path, ("--detach", str(path), start), changing)
        _fill(path, common, lock)
        return _mark(Worktree(path, start))


def dispose(repo: Path, path: Path, *, unless: Callable[[], str] = str) -> str:
    """No worktree is at the path any more, `unless` there is a reason. Branches stay: they hold the work."""
    if not repo.exists():
        _delete(path, registered=False)
        return ""
    with _at(repo, path) as (common, _):
        if reason := unless():
            return reason
        with held(common / LOCK_FILE) as changing:
            _remove(repo, path, common, changing)
        _delete_tree(_aside(path))
    return ""


def repair(repo: Path, path: Path) -> None:
    """Tie a worktree to its repository again: its `.git` file was deleted, or the repository was moved."""
    if path.is_dir() and find(path) is None:
        with contextlib.suppress(GitError):
            git(repo, "worktree", "repair", str(path))


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


def _mark(worktree: Worktree) -> Worktree:
    git(worktree.path, "update-ref", BASE_REF, worktree.base)
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


def tip(repo: Path) -> str:
    """The commit that is checked out, from git's own files where they tell: a process of git takes much longer."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        head = (repo / ".git" / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        found = head if branch == head else (repo / ".git" / branch).read_text().strip()
        if _COMMIT.fullmatch(found):
            return found
    return commit_of(repo, "HEAD")


def common_directory(repo: Path) -> Path:
    """Where the repository keeps what its worktrees share."""
    if not repo.exists():
        raise NotFoundError(
            f"there is no repository at {printable(str(repo))}: the path is missing",
            "service repo add OWNER/NAME PATH, with the path it is at now",
        )
    try:
        return Path(line(repo, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    except GitError as error:
        hint = f"git -C {printable(str(repo))} init"
        raise RepositoryError(
            f"{printable(str(repo))} is not the root of a git repository: {error.said}", hint
        ) from None


@contextlib.contextmanager
def _at(repo: Path, path: Path) -> Iterator[tuple[Path, int]]:
    """One caller at a time per worktree; the repository itself is locked only while git changes what it shares."""
    common = common_directory(repo)
    with held(common / f"{LOCK_PREFIX}{path.name}.lock") as lock:
        yield common, lock


def _existing(repo: Path, path: Path, common: Path) -> Worktree | None:
    repair(repo, path)
    worktree = find(path)
    if worktree is not None and common_directory(path) != common:
        raise RefusedError(f"{printable(str(path))} is a worktree of another repository, {common_directory(path)}")
    return worktree


def _register(repo: Path, path: Path, arguments: tuple[str, ...], lock: int) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    git(repo, "worktree", "add", "--quiet", "--no-checkout", *arguments, holding=(lock,))


def _fill(path: Path, common: Path, lock: int) -> None:
    """Write the files: the long part, and the worktree's own affair."""
    _delete_tree(_aside(path))
    git(path, "reset", "--quiet", "--hard", "--no-recurse-submodules", holding=(lock,))
    fill_submodules(path, common)


def _remove(repo: Path, path: Path, common: Path, lock: int) -> dict[str, str | None]:
    """Also what a killed `worktree add` left half-made, locked or not; `worktree prune` would touch other people's.

    Its files are moved aside only. Returns the worktrees that are left, with their branches.
    """
    known = entries(repo)
    mine = [entry for entry in known if os.path.realpath(entry) == os.path.realpath(path)]
    _delete(path, registered=bool(mine), later=True)
    for entry in mine:
        git(repo, "worktree", "remove", "--force", "--force", str(path), holding=(lock,))
        del known[entry]
    for record in (common / "worktrees").glob(f"{path.name}*"):
        if not (record / "gitdir").exists():
            shutil.rmtree(record)
    return known


def entries(repo: Path) -> dict[str, str | None]:
    """Path and branch of every worktree the repository knows."""
    known: dict[str, str | None] = {}
    for record in git(repo, "worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        fields = record.decode("utf-8", "surrogateescape").split("\0")
        entry = dict(field.partition(" ")[::2] for field in fields)
        if "worktree" in entry:
            known[entry["worktree"]] = entry.get("branch")
    return known


def _release_branch(repo: Path, branch: str, known: dict[str, str | None], lock: int) -> None:
    """Forget worktrees that hold the branch but are gone; refuse when one is alive."""
    for path, held_branch in known.items():
        if held_branch == f"refs/heads/{branch}":
            if Path(path).exists():
                hint = f"git -C {printable(str(repo))} worktree remove {printable(path)}"
                raise RefusedError(f"branch {branch} is checked out in {printable(path)}", hint)
            git(repo, "worktree", "remove", "--force", "--force", path, holding=(lock,))


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}{ASIDE}")


def _delete(path: Path, *, registered: bool, later: bool = False) -> None:
    """Remove a worktree's files: moved aside first, so that a half-deleted one cannot be mistaken for anything else."""
    aside = _aside(path)
    if not path.exists() and not path.is_symlink():
        if not later:
            _delete_tree(aside)
        return
    is_worktree = registered or (path / ".git").is_file() or not any(path.iterdir())
    if path.is_symlink() or not path.is_dir() or not is_worktree:
        raise RefusedError(f"{printable(str(path))} is not a worktree: it stays as it is")
    _delete_tree(aside)
    path.rename(aside)
    if not later:
        _delete_tree(aside)


def _delete_tree(path: Path) -> None:
    """By a program, because many are deleted at once and a folder of many files keeps the interpreter busy."""
    if not path.is_symlink() and not path.exists():
        return
    if subprocess.run(["rm", "-rf", "--", str(path)], stderr=subprocess.DEVNULL, check=False).returncode:
        for folder, _, _ in os.walk(path):  # tools leave read-only folders behind
            os.chmod(folder, 0o700)
        shutil.rmtree(path)
