"""Branches with the work of legs, read, compared and moved in the repository (rulings I1, I5), without a checkout."""

import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from activities.git.command import git, git_stream, printable
from activities.git.library import ObjectsError, let_go, library, open_repository
from activities.git.registered_repository import common_directory, git_directory
from workflows.model.errors import RefusedError

if TYPE_CHECKING:
    from pygit2 import Diff, DiffDelta, DiffFile, Oid, Repository

P = ParamSpec("P")
Answer = TypeVar("Answer")
MOST_COMPARED = 16 << 20
"""Largest file, in bytes, that is compared line by line; larger ones count as binary."""


@dataclass(frozen=True)
class Distance:
    """The commits that a branch has and another lacks, and the reverse."""

    ahead: int
    behind: int


@dataclass(frozen=True)
class FileChange:
    """A file of a diff. Without counts it is binary."""

    path: str
    added: int | None
    removed: int | None


@contextlib.contextmanager
def reading(repo: Path) -> Iterator["Repository"]:
    """Open the repository. Objects that can't be read raise ObjectsError."""
    repository = open_repository(repo)
    try:
        with objects_errors(repo):
            yield repository
    finally:
        let_go(repository)


@contextlib.contextmanager
def objects_errors(where: Path) -> Iterator[None]:
    """Convert libgit2's errors about missing or broken objects to ObjectsError."""
    try:
        yield
    except (library().GitError, KeyError, ValueError) as error:
        path = printable(str(where))
        message = str(error.args[0] if error.args else error)
        raise ObjectsError(f"git failed in {path}: {message}", f"git -C {path} fsck --connectivity-only") from None


def check_name(repo: Path, branch: str) -> None:
    """Refuse an invalid name of a branch."""
    if not library().reference_is_valid_name(f"refs/heads/{branch}"):
        raise RefusedError(f"{branch} is not a valid branch name", f"git -C {printable(str(repo))} branch --list")


def tip(repo: Path, branch: str) -> str | None:
    """Return the commit of a branch; None if the branch does not exist."""
    return commit(repo, f"refs/heads/{branch}")


def commit(repo: Path, revision: str) -> str | None:
    """Return the commit that a revision names; None if the repository does not have it."""
    pygit2, repository = library(), open_repository(repo)
    try:
        return str(repository.revparse_single(revision).peel(pygit2.Commit).id)
    except (KeyError, ValueError, pygit2.GitError):
        return None
    finally:
        let_go(repository)


def kind_of(repo: Path, revision: str) -> str:
    """Return the type of the object that a revision names: commit, tree, blob or tag; empty if it names nothing."""
    repository = open_repository(repo)
    try:
        return str(repository.revparse_single(revision).type_str)
    except (KeyError, ValueError, library().GitError):
        return ""
    finally:
        let_go(repository)


def tree_of(repo: Path, commit: str) -> str:
    """Return the id of a commit's tree."""
    with reading(repo) as repository:
        return str(repository.revparse_single(commit).peel(library().Commit).tree_id)


def has_commits(repo: Path) -> bool:
    """Return whether the repository has any reference."""
    with reading(repo) as repository:
        return any(True for _ in repository.raw_listall_references())


def contains(repo: Path, newer: str, older: str) -> bool:
    """Return whether `older` is `newer` or one of its ancestors."""
    with reading(repo) as repository:
        return holds_all(repository, newer, older)


def holds_all(repository: "Repository", newer: str, older: str) -> bool:
    """Return whether `older` is `newer` or one of its ancestors, in an open repository."""
    above = repository.revparse_single(newer).peel(library().Commit).id
    below = repository.revparse_single(older).peel(library().Commit).id
    return above == below or repository.descendant_of(above, below)


def commits_beyond(repo: Path, head: str, hidden: Collection[str]) -> tuple[str, ...]:
    """List the commits reachable from `head` but from none of the hidden ones, newest first."""
    with reading(repo) as repository:
        pygit2 = library()
        if pygit2.Oid(hex=head) not in repository:
            return ()
        walker = repository.walk(pygit2.Oid(hex=head), pygit2.enums.SortMode.TOPOLOGICAL)
        for commit in hidden:
            if (known := pygit2.Oid(hex=commit)) in repository:
                walker.hide(known)
        return tuple(str(each.id) for each in walker)


def merges_on_top(repo: Path, head: str, merged: Collection[str]) -> tuple[str, ...]:
    """List the merges of these commits that a head ends with, newest first."""
    with reading(repo) as repository:
        kind, merges, top = library().Commit, list[str](), repository.get(head)
        while isinstance(top, kind) and len(top.parent_ids) == 2 and str(top.parent_ids[1]) in merged:
            merges.append(str(top.id))
            top = repository.get(top.parent_ids[0])
        return tuple(merges)


def commits_built_on(side: Path, repo: Path, head: str, base: str) -> tuple[str, ...]:
    """List the commits of `repo`, outside `base`, that the new commits in the repository `side` build on."""
    oid = library().Oid
    with reading(side) as new, reading(repo) as known:
        waiting, seen, shared = [oid(hex=head)], set["Oid"](), list[str]()
        while waiting:
            commit = waiting.pop()
            if commit in seen:
                continue
            seen.add(commit)
            if commit not in known:
                waiting += new[commit].peel(library().Commit).parent_ids
            elif not holds_all(new, base, str(commit)):
                shared.append(str(commit))
        return tuple(sorted(shared))


def subjects(repo: Path, commits: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return each commit with the first line of its message."""
    with reading(repo) as repository:
        messages = ((each, repository.revparse_single(each).peel(library().Commit).message) for each in commits)
        return tuple((each, next(iter(message.strip().splitlines()), "")) for each, message in messages)


def merge_base(repo: Path, one: str, other: str) -> str | None:
    """Return the last common ancestor of two commits; None if they have none."""
    with reading(repo) as repository:
        kind = library().Commit
        base = repository.merge_base(*(repository.revparse_single(each).peel(kind).id for each in (one, other)))
        return str(base) if base else None


def distance(repo: Path, branch: str, other: str) -> Distance:
    """Count the commits that each of two revisions has and the other lacks."""
    with reading(repo) as repository:
        kind = library().Commit
        ends = (repository.revparse_single(each).peel(kind).id for each in (branch, other))
        return Distance(*repository.ahead_behind(*ends))


def checkout_of(repo: Path, branch: str) -> Path | None:
    """Find a person's checkout or worktree that has the branch checked out, from git's own files."""
    common = common_directory(repo)
    checkouts = [(common, common.parent)] if common.name == ".git" else []
    for own in sorted((common / "worktrees").glob("*")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            checkouts.append((own, Path((own / "gitdir").read_text().strip()).parent))
    if (own := git_directory(repo)) == common and common.name != ".git" and common != repo.resolve():
        checkouts.append((own, repo))
    for own, where in checkouts:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if (own / "HEAD").read_text().strip() == f"ref: refs/heads/{branch}" and where.exists():
                return where
    return None


LOCK_SECONDS = 5.0
"""How long a writer waits for a reference that somebody else writes or packs, as git does here."""


def wait_for_lock(write: Callable[P, Answer]) -> Callable[P, Answer]:
    """Decorate a writer of a loose reference: libgit2 raises OSError where git waits for the lock."""

    @wraps(write)
    def writing(*args: P.args, **kwargs: P.kwargs) -> Answer:
        until = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                return write(*args, **kwargs)
            time.sleep(0.02)
        return write(*args, **kwargs)

    return writing


@wait_for_lock
def move(repo: Path, branch: str, new: str, old: str | None, why: str) -> bool:
    """Move a branch to a commit if it still is at `old`; return False if somebody else moved it first."""
    pygit2, name = library(), f"refs/heads/{branch}"
    with reading(repo) as repository:
        try:
            if old is None:
                repository.create_reference_direct(name, pygit2.Oid(hex=new), False, why)
                return True
            there = repository.lookup_reference(name)
            if str(there.target) == old:
                there.set_target(pygit2.Oid(hex=new), why)
                return True
        except (pygit2.GitError, KeyError, ValueError):
            if tip(repo, branch) == old:
                raise
    return False


def delete(repo: Path, branch: str, old: str) -> None:
    """Delete a branch, unless it has moved from `old`. Git does it: libgit2 would write the packed references as it
    read them before it had their lock, without those that git packs meanwhile.
    """
    there = tip(repo, branch)
    if there is None:
        return
    if there != old:
        raise RefusedError(f"{branch} has moved to {there}, from {old}", "service job branches JOB")
    git(repo, "update-ref", "-d", f"refs/heads/{branch}", old)


def changes(repo: Path, base: str, head: str) -> tuple[FileChange, ...]:
    """List the files that differ, with their numbers of added and removed lines. A rename counts as its two paths."""
    with reading(repo) as repository:
        kind = library().Commit
        ends = (repository.revparse_single(each).peel(kind).tree for each in (base, head))
        diff = repository.diff(*ends)
        return tuple(_file_change(repository, diff, number, delta) for number, delta in enumerate(diff.deltas))


def size_of(repository: "Repository", side: "DiffFile") -> int:
    """Return the size of one side of a change."""
    known = side.id in repository.odb
    return int(repository.odb.read_header(side.id)[1]) if known else 0


def _file_change(repository: "Repository", diff: "Diff", number: int, delta: "DiffDelta") -> FileChange:
    raw = delta.new_file.raw_path or delta.old_file.raw_path
    path = raw.decode("utf-8", "surrogateescape")
    if any(size_of(repository, side) > MOST_COMPARED for side in (delta.old_file, delta.new_file)):
        return FileChange(path, None, None)
    patch = diff[number]
    if patch is None or patch.delta.is_binary:
        return FileChange(path, None, None)
    _, added, removed = patch.line_stats
    return FileChange(path, added, removed)


_HEADER = re.compile(r'diff --git (?:"a/(?:[^"\\]|\\.)*"|a/.*?) (?:"b/(?P<quoted>(?:[^"\\]|\\.)*)"|b/(?P<plain>.*))')
_OPTIONS = (
    *("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)


def patch(repo: Path, base: str, head: str, *, binary: bool) -> Iterator[bytes]:
    """Yield the diff in pieces; with `binary` it can be applied whatever files it has."""
    yield from git_stream(repo, "diff", *_OPTIONS, *(("--binary",) if binary else ()), base, head)


def changes_of(text: str) -> tuple[FileChange, ...]:
    """Return the files of a diff with their added and removed lines."""
    files: list[FileChange] = []
    in_hunk = False
    for row in text.splitlines():
        if header := _HEADER.fullmatch(row):
            files.append(FileChange(header["quoted"] or header["plain"], 0, 0))
            in_hunk = False
        elif files and row.startswith("Binary files "):
            files[-1] = FileChange(files[-1].path, None, None)
        elif row.startswith("@@ "):
            in_hunk = True
        elif files and in_hunk and row[:1] in {"+", "-"}:
            change, plus = files[-1], row[0] == "+"
            files[-1] = FileChange(change.path, (change.added or 0) + plus, (change.removed or 0) + (not plus))
    return tuple(files)
