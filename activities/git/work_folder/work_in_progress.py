"""Snapshots of a running job's work folder, as commits of the service (ruling Q6).

A snapshot has every file but ignored ones, uncommitted and untracked files too, and the job's base as its parent. It is
made in the service's git directory, without the agent's index, branch and hooks. Of files unchanged since the previous
snapshot, only the stat data is read.
"""

import contextlib
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from activities.git.git_branches import objects_errors
from activities.git.library import let_go, library, open_alone, open_repository, signature
from activities.git.work_folder.agent_git_dir import read
from activities.git.work_folder.commit import message, trailers_of
from activities.git.work_folder.files_for_commit import FolderSnapshot, SnapshotLimits, snapshot
from activities.git.work_folder.index_file import Row
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.walk import clear_the_way
from activities.git.work_folder.worktrees import Worktree
from activities.redaction.redact import redact_text, secrets_of
from workflows.policy.ci_files import is_ci_file

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pygit2 import Commit, Oid, Repository

LIMITS = SnapshotLimits(files=20_000, bytes=256 << 20, largest=32 << 20, leaves_out=True)
LEFT_OUT, MOST_TOLD = "Left-Out", 50
LARGEST_SEARCHED = 1 << 20
"""Size of the largest file that is searched for secrets. Larger files count as data, and are in the snapshot
unsearched.
"""

MOST_SEARCHED = 8 << 20
"""Bytes that one snapshot searches for secrets; the files beyond wait for the next snapshot."""

_BINARY_HEAD = 8000
"""Bytes at a file's beginning in which git looks for a NUL, to tell binary files from text."""

_RECORD, _PUSHED = "in-progress.json", "in-progress.pushed"


@dataclass(frozen=True)
class InProgress:
    """A snapshot. Without a commit, the work folder doesn't differ from the base."""

    commit: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Last:
    """The previous snapshot, and the files that it read; None for a file that was missing."""

    base: str
    tree: str = ""
    made: InProgress = InProgress()
    files: dict[str, Row | None] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    """The files that may not be pushed, with the reason of each."""


def take(worktree: Worktree, job_id: str, attempt: int, *, to_branches: bool = False) -> InProgress:
    """Commit the work folder's current files, unless nothing has changed since the previous snapshot. Return the latest
    snapshot.

    Files with new secrets are left out, and with `to_branches` also changed CI files.
    """
    side, last = side_of(worktree.path), _read(worktree)
    with objects_errors(worktree.path):
        seen = snapshot(worktree.path, side, read(worktree.path, None).tracked, last.files, LIMITS)
        odd = sorted(each.sentence for each in seen.odd) + [f"{name}: a repository" for name in seen.nested]
        if not seen.changed and not seen.gone:
            made = replace(last.made, left_out=_left_out(odd, last.withheld))
            if seen.read or made != last.made:
                _write(side, replace(last, made=made, files={**last.files, **seen.read}))
            return made
        repository = open_repository(side)
        try:
            pygit2 = library()
            base = repository.revparse_single(worktree.base).peel(pygit2.Commit)
            withheld = _withhold(repository, base, seen, last.withheld, to_branches=to_branches)
            files, left_out = last.files | seen.read | dict.fromkeys(seen.gone), _left_out(odd, withheld)
            tree = _tree(repository, last.tree or str(base.tree_id), seen)
            commit = ""
            if last.made.commit or tree != str(base.tree_id):
                subject = message("Work in progress", trailers_of(job_id, attempt=attempt)).rstrip("\n")
                rows = (f"{LEFT_OUT}: {redact_text(each)}" for each in left_out[:MOST_TOLD])
                who = signature()
                text = "\n".join([subject, *rows]) + "\n"
                commit = str(repository.create_commit(None, who, who, text, pygit2.Oid(hex=tree), [base.id]))
        finally:
            let_go(repository)
    made = InProgress(commit, left_out)
    _write(side, _Last(worktree.base, tree, made, files, withheld))
    return made


def _left_out(odd: list[str], withheld: dict[str, str]) -> tuple[str, ...]:
    return (*odd, *(f"{name}: {why}" for name, why in sorted(withheld.items())))


def _withhold(
    repository: "Repository", base: "Commit", seen: FolderSnapshot, before: dict[str, str], *, to_branches: bool
) -> dict[str, str]:
    """Remove the files that may not be pushed from the changes. Return all such files, each with its reason.

    A file that was not searched yet counts as unread, so the next snapshot searches it.
    """
    withheld = {name: why for name, why in before.items() if name not in seen.changed and name not in seen.gone}
    unsearched = MOST_SEARCHED
    for name, (stored, _) in sorted(seen.changed.items()):
        size = repository[stored].size  # type: ignore[attr-defined]
        if to_branches and is_ci_file(name):
            withheld[name] = "a CI file, which a forge would run"
        elif size > LARGEST_SEARCHED:
            continue
        elif unsearched < size:
            del seen.read[name]
            withheld[name] = "not searched for secrets yet"
        else:
            unsearched -= size
            if _secrets(repository, stored) - _secrets(repository, _in_base(base, name)):
                withheld[name] = "it holds a secret"
    for name in withheld.keys() & seen.changed.keys():
        del seen.changed[name]
    return withheld


def _in_base(base: "Commit", name: str) -> "Oid | None":
    with contextlib.suppress(KeyError, UnicodeError):
        return base.tree[name].id
    return None


def _secrets(repository: "Repository", stored: "Oid | None") -> "AbstractSet[str]":
    """Return the secrets in a file; none in a binary one."""
    if stored is None:
        return frozenset()
    data = repository[stored].data  # type: ignore[attr-defined]
    return frozenset() if b"\0" in data[:_BINARY_HEAD] else secrets_of(data.decode("utf-8", "replace"))


def pushed_snapshot(worktree: Worktree) -> str:
    """Return the snapshot of this work folder that was pushed last; empty if none was."""
    with contextlib.suppress(FileNotFoundError):
        return (side_of(worktree.path) / _PUSHED).read_text()
    return ""


def mark_pushed(worktree: Worktree, commit: str) -> None:
    """Record that a snapshot is pushed, or is about to be."""
    (side_of(worktree.path) / _PUSHED).write_text(commit)


def lay_out(worktree: Worktree, commit: str) -> tuple[str, ...]:
    """Write the files of a snapshot into a work folder at the snapshot's base, uncommitted. Return the files that the
    snapshot left out.
    """
    pygit2, side = library(), side_of(worktree.path)
    ways = pygit2.enums.CheckoutStrategy
    with objects_errors(worktree.path):
        repository = open_alone(side)
        made = repository.revparse_single(commit).peel(pygit2.Commit)
        base = repository.revparse_single(worktree.base).peel(pygit2.Commit)
        names = [delta.new_file.raw_path or b"" for delta in repository.diff(base.tree, made.tree).deltas]
        clear_the_way(worktree.path, list(map(os.fsdecode, names)))
        repository.workdir = str(worktree.path)
        how = ways.FORCE | ways.DONT_UPDATE_INDEX | ways.DISABLE_PATHSPEC_MATCH
        paths = [name.decode("utf-8", "replace") for name in names]
        texts = not any("\ufffd" in path for path in paths)  # libgit2 takes paths as text
        if paths:  # an empty list would mean every file
            repository.checkout_tree(made.tree, strategy=how, paths=paths if texts else [])  # type: ignore[no-untyped-call]
        repository.free()
    rows = (row.partition(f"{LEFT_OUT}: ") for row in made.message.splitlines())
    return tuple(remark for front, mark, remark in rows if mark and not front)


def _tree(repository: "Repository", before: str, seen: FolderSnapshot) -> str:
    pygit2 = library()
    index = pygit2.Index()
    index.read_tree(repository.revparse_single(before).peel(pygit2.Tree))
    for name in seen.gone:
        with contextlib.suppress(OSError, KeyError):
            index.remove(os.fsencode(name))
    for name, (stored, mode) in sorted(seen.changed.items()):
        index.add(pygit2.IndexEntry(os.fsencode(name), stored, mode))
    return str(index.write_tree(repository))


def _read(worktree: Worktree) -> _Last:
    """Return the previous snapshot if its base is the same, else an empty one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads((side_of(worktree.path) / _RECORD).read_text())
        if record["base"] == worktree.base:
            files = {name: row and _row(name, *row) for name, row in record["files"]}
            made = InProgress(record["commit"], tuple(record["left_out"]))
            return _Last(record["base"], record["tree"], made, files, record.get("withheld", {}))
    return _Last(worktree.base)


def _row(name: str, stored: str, mode: int, looked: list[int]) -> Row:
    modified, changed, inode, size = looked
    return Row(name, bytes.fromhex(stored), mode, (modified, changed, inode, size))


def _write(side: Path, last: _Last) -> None:
    rows = [(name, row and (row.object_id.hex(), row.mode, row.looked)) for name, row in last.files.items()]
    record = {"base": last.base, "tree": last.tree, "files": rows, "withheld": last.withheld}
    fresh = side / f"{_RECORD}.new"
    fresh.write_text(json.dumps(record | {"commit": last.made.commit, "left_out": last.made.left_out}))
    fresh.replace(side / _RECORD)
