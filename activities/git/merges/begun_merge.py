"""Begin a merge in a job's work folder: its agent edits the files that conflict, the service commits (rulings O3, O6).

The agent's `.git` records that a merge is in progress, so an agent that may write there can also commit it.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from activities.git.command import printable
from activities.git.git_branches import contains, objects_errors
from activities.git.library import let_go, library, open_repository
from activities.git.merges.commits import CommitConflict, commit_merge, merged_tree
from activities.git.merges.task_line import LeftOutBranch
from activities.git.work_folder.service_git_dir import record_of, side_of
from activities.git.work_folder.work_in_progress import lay_out
from activities.git.work_folder.worktree_changes import WorktreeState
from activities.git.work_folder.worktrees import Worktree
from workflows.model.errors import RefusedError
from workflows.policy.reference_names import leg_reference

if TYPE_CHECKING:
    from pygit2 import Tree

_RECORD = "merging.json"


@dataclass(frozen=True)
class _BegunMerge:
    """A merge in progress, whose conflict markers name both commits."""

    leg: str
    ours: str
    theirs: str
    files: tuple[str, ...]


def begin(worktree: Worktree, parts: Sequence[LeftOutBranch], *, fill: bool) -> None:
    """Merge these parts into the work folder's base, write the files with conflict markers, and record the merge as in
    progress.

    Without `fill` the files are there already. Call this last, before a run starts.
    """
    record = side_of(worktree.path) / _RECORD
    record.unlink(missing_ok=True)
    repo = record_of(worktree.path).repo
    head, begun = worktree.base, list[_BegunMerge]()
    for part in parts:
        if contains(repo, head, part.commit):
            continue
        merged = merged_tree(repo, head, part.commit)
        files = merged.files if isinstance(merged, CommitConflict) else ()
        tree = merged.tree if isinstance(merged, CommitConflict) else merged
        if not tree:
            raise RefusedError("a merge with conflicts can't be begun, because git is missing on this host", "git")
        begun.append(_BegunMerge(part.leg, head, part.commit, files))
        head = commit_merge(repo, tree, (head, part.commit), f"Begin to merge {part.branch}\n")
    if not begun:
        return
    record.write_text(json.dumps([asdict(merge) for merge in begun]))
    if fill:
        lay_out(worktree, head)
    git = worktree.path / ".git"
    (git / "MERGE_HEAD").write_text("".join(f"{merge.theirs}\n" for merge in begun))
    (git / "MERGE_MSG").write_text(f"Merge {', '.join(leg_reference(merge.leg) for merge in begun)}\n")


def merge_faults(worktree: Worktree, seen: WorktreeState) -> tuple[str, ...]:
    """Return sentences about the unfinished parts of the merge that was begun in this work folder."""
    record = side_of(worktree.path) / _RECORD
    if not record.exists():
        return ()
    begun = [_BegunMerge(**fields) for fields in json.loads(record.read_text())]
    return tuple(fault for merge in begun for fault in _faults(worktree, seen, merge))


def _faults(worktree: Worktree, seen: WorktreeState, merge: _BegunMerge) -> Iterator[str]:
    side = side_of(worktree.path)
    if merge.theirs not in seen.merging and not contains(side, seen.head, merge.theirs):
        yield f"the merge of {leg_reference(merge.leg)} was given up"
        return
    marks = tuple(f"{mark} {commit}".encode() for mark, commit in (("<<<<<<<", merge.ours), (">>>>>>>", merge.theirs)))
    repository = open_repository(side)
    try:
        with objects_errors(worktree.path):
            tree = repository.revparse_single(seen.tree).peel(library().Tree)
            for name in merge.files:
                if any(line.startswith(marks) for line in _content(tree, name).splitlines()):
                    yield f"{printable(name)} has conflict markers"
                for end in (merge.ours, merge.theirs):
                    if _content(tree, f"{name}~{end}"):
                        yield f"{printable(name)}~{end} is a side of a conflict"
    finally:
        let_go(repository)


def _content(tree: "Tree", name: str) -> bytes:
    with contextlib.suppress(KeyError, UnicodeError):  # gone, or no text
        entry = tree[name]
        return entry.data if isinstance(entry, library().Blob) else b""
    return b""
