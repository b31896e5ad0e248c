"""Hand a job's commits over to its registered repository: objects first, then the branch (ruling N3)."""

from pathlib import Path
from typing import TYPE_CHECKING

from activities.git.branches import faults_said
from activities.git.library import let_go, library, opened

if TYPE_CHECKING:
    from pygit2 import Odb, Oid, Repository


def hand_over(side: Path, common: Path, commit: str) -> None:
    """Copy a commit and all its objects from the service's side to the registered repository.

    An object is written after those it refers to, so a kill leaves only whole objects.
    """
    source, target = opened(side), opened(common)
    try:
        with faults_said(side):
            _commits(source, target.odb, library().Oid(hex=commit))
    finally:
        let_go(source)
        let_go(target)


def _commits(source: "Repository", target: "Odb", wanted: "Oid") -> None:
    """Copy missing commits, each after its parents."""
    waiting: list[tuple[Oid, bool]] = [(wanted, False)]
    while waiting:
        each, ready = waiting.pop()
        if each in target:
            continue
        commit = source[each].peel(library().Commit)
        if ready:
            _trees(source, target, commit.tree_id)
            _write(source, target, each)
        else:
            waiting.append((each, True))
            waiting += [(parent, False) for parent in commit.parent_ids]


def _trees(source: "Repository", target: "Odb", wanted: "Oid") -> None:
    waiting: list[tuple[Oid, bool]] = [(wanted, False)]
    while waiting:
        each, filled = waiting.pop()
        if each in target:
            continue
        if filled:
            _write(source, target, each)
            continue
        waiting.append((each, True))
        for entry in source[each].peel(library().Tree):
            if entry.type_str == "tree":
                waiting.append((entry.id, False))
            elif entry.type_str == "blob" and entry.id not in target:
                _write(source, target, entry.id)


def _write(source: "Repository", target: "Odb", each: "Oid") -> None:
    kind, data = source.odb.read(each)
    target.write(kind, data)
