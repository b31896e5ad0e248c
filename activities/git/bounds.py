"""Limits on the size of an agent's commits when they are written out: a small object can name itself a million times.

Check them before code reads a whole tree into memory, or writes it to a disk.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from activities.git.library import library
from activities.git.look_around import MOST_LEVELS
from workflows.model.errors import RefusedError

if TYPE_CHECKING:
    from pygit2 import Odb, Oid, Repository

MOST_FILES = 2_000_000
MOST_COMMITS = 100_000
MOST_BYTES = 512 << 20
"""Size limit of one file."""


@dataclass
class Bounds:
    """The check of commits, with the number of files and levels of folders of the trees seen so far."""

    repository: "Repository"
    known: "Odb"
    """Objects that existed before: their files are not checked."""
    trees: "dict[Oid, tuple[int, int]]" = field(default_factory=dict)

    def check(self, commits: "list[Oid]") -> None:
        """Refuse commits, and new ones among their ancestors, that exceed the limits."""
        waiting, seen = list(commits), set()
        while waiting:
            each = waiting.pop()
            if each in seen or each in self.known:
                continue
            seen.add(each)
            if len(seen) > MOST_COMMITS:
                raise _refused(f"more than {MOST_COMMITS} commits")
            commit = self.repository[each].peel(library().Commit)
            self._tree(commit.tree_id)
            waiting += commit.parent_ids

    def _tree(self, top: "Oid") -> None:
        waiting = [top]
        while waiting:
            each = waiting[-1]
            entries = [] if each in self.trees else list(self.repository[each].peel(library().Tree))
            below = [entry.id for entry in entries if entry.type_str == "tree"]
            if missing := [tree for tree in below if tree not in self.trees]:
                if len(waiting) > MOST_LEVELS:
                    raise _refused(f"more than {MOST_LEVELS} levels of folders")
                waiting.append(missing[0])
                continue
            waiting.pop()
            if each not in self.trees:
                for entry in entries:
                    self._file(entry.id, entry.type_str)
                files = len(entries) - len(below) + sum(self.trees[tree][0] for tree in below)
                levels = 1 + max((self.trees[tree][1] for tree in below), default=0)
                self._fits(each, files, levels)

    def _fits(self, tree: "Oid", files: int, levels: int) -> None:
        if files > MOST_FILES:
            raise _refused(f"more than {MOST_FILES} files")
        if levels > MOST_LEVELS:
            raise _refused(f"more than {MOST_LEVELS} levels of folders")
        self.trees[tree] = files, levels

    def _file(self, stored: "Oid", kind: str) -> None:
        if kind == "blob" and stored not in self.known:
            _, size = self.repository.odb.read_header(stored)
            if size > MOST_BYTES:
                raise _refused(f"a file of more than {MOST_BYTES >> 20} MiB")


def _refused(what: str) -> RefusedError:
    return RefusedError(f"what was committed there has {what}", "git log --stat, in the folder it was left in")
