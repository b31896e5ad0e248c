"""Changes of a job in its work folder: untracked files, touched files, the diff (ruling I4).

Ignored files never count. The folder is looked at once, as data (`snapshot`); a caller with several questions asks them
of one `WorktreeState`.
"""

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from activities.git import git_branches
from activities.git.command import all_printable
from activities.git.git_branches import objects_errors
from activities.git.library import ADDRESS, let_go, library, open_repository
from activities.git.work_folder.agent_git_dir import AgentsSide, read
from activities.git.work_folder.files_for_commit import WHOLE, FolderSnapshot, snapshot
from activities.git.work_folder.service_git_dir import record_of, side_of
from activities.git.work_folder.take_commits import CommitCheck, take_over
from activities.git.work_folder.walk import Odd
from activities.git.work_folder.worktrees import Worktree
from workflows.model.errors import RefusedError, ServiceError
from workflows.policy.observation import Touched

if TYPE_CHECKING:
    from pygit2 import Commit, Diff, DiffDelta, Repository

MAX_FILES = 2000
MAX_BYTES = 256_000


@dataclass(frozen=True)
class CapturedDiff:
    """A diff as evidence, or its beginning if it is too long to keep."""

    text: str
    cut: bool


@dataclass(frozen=True)
class WorktreeState:
    """The state of a work folder."""

    common: Path
    """The registered repository's common git directory."""
    head: str
    """The commit that the files are compared with: the agent's last one, or the service's later commit on top of it."""
    own: str
    """The agent's latest commit on the job's branch."""
    merging: tuple[str, ...]
    tree: str
    """Id of the git tree of the files."""
    touched: tuple[str, ...]
    dirty: tuple[str, ...] = ()
    """The files that differ from the head."""
    odd: tuple[Odd, ...] = ()
    products: tuple[str, ...] = ()
    """Build products that were left out."""
    refused: ServiceError | None = None
    """The reason why the agent's commits were refused; None if they were taken over."""


def look(worktree: Worktree, *, products: bool = False) -> WorktreeState:
    """Look at the files, and take over the agent's commits: into the service's git directory, not the registered
    repository.

    Without `products`, build products that nobody has committed are left out, although they are not ignored.
    """
    path, record = worktree.path, record_of(worktree.path)
    agents = read(path, worktree.branch)
    with objects_errors(path):
        seen = snapshot(path, side_of(path), agents.tracked, limits=replace(WHOLE, products=products))
        base, tree = worktree.base, record.tree if record.base == worktree.base else ""
        if worktree.branch is None and tree and agents.is_at(base) and not seen.anything:
            return WorktreeState(
                record.common, head=base, own=base, merging=(), tree=tree, touched=(), products=tuple(seen.products)
            )
        repository = open_repository(side_of(path))
        try:
            agents, refused = _accept_commits(repository, worktree, record.common, agents)
            head = agents.head or worktree.base
            tree = _tree(repository, worktree.base, head, seen)
            head = _service_commit(repository, worktree, record.common, head, tree)
            dirty = _between(repository, head, tree) | set(seen.nested)
            names = _between(repository, worktree.base, head) | dirty
        finally:
            let_go(repository)
    odd = [*seen.odd, *([Odd(".git", agents.fault)] if agents.fault else [])]
    return WorktreeState(
        common=record.common,
        head=head,
        own=agents.branch or worktree.base,
        merging=agents.merging,
        tree=tree,
        touched=tuple(sorted(names | {each.path for each in seen.odd})),
        dirty=tuple(sorted(dirty)),
        odd=tuple(sorted(odd, key=lambda entry: entry.path)),
        products=tuple(sorted(seen.products)),
        refused=refused,
    )


def touched_files(worktree: Worktree, limit: int = MAX_FILES, seen: WorktreeState | None = None) -> Touched:
    """List the files that differ from the head, and those in the agent's own commits, as the spec says.

    Without rename detection a rename is a deletion and an addition: both paths count. Ignored files never count. Call
    this before the service commits.
    """
    files = all_printable((seen or look(worktree)).touched)
    return Touched(files=files[:limit], complete=len(files) <= limit)


def capture_diff(worktree: Worktree, limit: int = MAX_BYTES, seen: WorktreeState | None = None) -> CapturedDiff:
    """Return the diff from the job's base, with untracked files. The work folder stays as it is."""
    with objects_errors(worktree.path):
        repository = open_repository(side_of(worktree.path))
        try:
            tree = seen.tree if seen else _files(repository, worktree)
            difference = _difference(repository, worktree.base, tree)
            difference.find_similar()
            return _text(repository, difference, limit)
        finally:
            let_go(repository)


def _files(repository: "Repository", worktree: Worktree) -> str:
    """Return the git tree of the files, without taking over commits: the agent may still be running."""
    tracked = read(worktree.path, None).tracked
    seen = snapshot(worktree.path, side_of(worktree.path), tracked)
    return _tree(repository, worktree.base, worktree.base, seen)


def _text(repository: "Repository", difference: "Diff", limit: int) -> CapturedDiff:
    data = b""
    for number, delta in enumerate(difference.deltas):
        data += _format_file(repository, difference, number, delta)
        if len(data) > limit:
            return CapturedDiff(data[:limit].decode("utf-8", "replace"), cut=True)
    return CapturedDiff(data.decode("utf-8", "replace"), cut=False)


def _format_file(repository: "Repository", difference: "Diff", number: int, delta: "DiffDelta") -> bytes:
    """Format one file of a diff. A file that is too large is not read."""
    if any(
        git_branches.size_of(repository, side) > git_branches.MOST_COMPARED for side in (delta.old_file, delta.new_file)
    ):
        old, new = (each.raw_path or b"" for each in (delta.old_file, delta.new_file))
        return b"diff --git a/%b b/%b\nBinary files a/%b and b/%b differ\n" % (old, new, old, new)
    patch = difference[number]
    return patch.data if patch is not None else b""


def _accept_commits(
    repository: "Repository", worktree: Worktree, common: Path, agents: AgentsSide
) -> tuple[AgentsSide, ServiceError | None]:
    """Take over the agent's commits. If they are refused, return the reason, and an `AgentsSide` without them."""
    wanted = {each for each in (agents.head, agents.branch, *agents.merging) if each}
    new = sorted(each for each in wanted - {worktree.base} if library().Oid(hex=each) not in repository)
    try:
        if new:
            take_over(worktree.path, common, new)
        known = open_repository(common)  # checked again even if an earlier look has taken them over
        CommitCheck(repository, known.odb).check([library().Oid(hex=each) for each in wanted])
        let_go(known)
        for commit in wanted:
            if git_branches.commit(side_of(worktree.path), commit) is None:
                raise RefusedError(f"{commit} is not a commit", f"git -C {worktree.path} log -1 {commit}")
    except (ServiceError, OSError) as fault:
        refused = fault if isinstance(fault, ServiceError) else RefusedError(f"its commits cannot be read: {fault}")
        return AgentsSide(tracked=agents.tracked), refused
    return agents, None


def _service_commit(repository: "Repository", worktree: Worktree, common: Path, head: str, tree: str) -> str:
    """Return the branch's tip if it is a commit that the service made on top of the agent's head; else the head."""
    kept = git_branches.tip(common, worktree.branch) if worktree.branch else None
    if kept is None or kept == head or not git_branches.holds_all(repository, kept, head):
        return head
    commit = repository.revparse_single(kept).peel(library().Commit)
    return kept if str(commit.tree_id) == tree or _only_ours(commit, head) else head


def _only_ours(commit: "Commit", since: str) -> bool:
    """Return whether all commits after `since` are the service's."""
    while commit.committer.email == ADDRESS and commit.parents:
        if since in map(str, commit.parent_ids):
            return True
        commit = commit.parents[0]
    return False


def _tree(repository: "Repository", base: str, head: str, seen: FolderSnapshot) -> str:
    """Build the tree of a folder's files: the head's tree with the snapshot's differences."""
    pygit2 = library()
    index = pygit2.Index()
    index.read_tree(repository.revparse_single(head).peel(pygit2.Commit).tree)
    moved = set() if head == base else _changed_files(repository, base, head)
    there = seen.changed.keys() | seen.same.keys()
    for name in seen.gone | {each for each in moved if each not in there and not seen.keeps(each)}:
        with contextlib.suppress(OSError, KeyError):
            index.remove(os.fsencode(name))
    for name, (stored, mode) in sorted(seen.changed.items()):
        index.add(pygit2.IndexEntry(os.fsencode(name), stored, mode))
    for name in sorted(moved & seen.same.keys()):
        row = seen.same[name]
        index.add(pygit2.IndexEntry(os.fsencode(name), pygit2.Oid(raw=row.object_id), row.mode))
    return str(index.write_tree(repository))


def _changed_files(repository: "Repository", base: str, head: str) -> set[str]:
    """Return the files that the agent's commits changed, without submodules."""
    deltas = _difference(repository, base, head).deltas
    link = library().enums.FileMode.COMMIT
    return {os.fsdecode(each.new_file.raw_path or b"") for each in deltas if each.new_file.mode != link}


def _between(repository: "Repository", one: str, other: str) -> set[str]:
    """Return the names that differ between two commits or trees."""
    names: set[str] = set()
    for delta in _difference(repository, one, other).deltas:
        names |= {os.fsdecode(file.raw_path) for file in (delta.old_file, delta.new_file)}
    return names


def _difference(repository: "Repository", one: str, other: str) -> "Diff":
    tree = library().Tree
    ends = (repository.revparse_single(each).peel(tree) for each in (one, other))
    difference: Diff = repository.diff(*ends)
    return difference
