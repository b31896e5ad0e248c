"""How large what an agent committed becomes when it is written out: a small object can name itself a million times.

Whatever reads a whole tree into memory, or writes it to a disk, may rely on this having been asked first.
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
"""Of one file; a larger one is no work of an agent's."""


@dataclass
class Bounds:
    """What is known of the trees that were looked at: files in them, and levels of folders."""

    repository: "Repository"
    known: "Odb"
    """Objects that were there before: the files among them are as large as they are."""
    trees: "dict[Oid, tuple[int, int]]" = field(default_factory=dict)

    def check(self, commits: "list[Oid]") -> None:
        """Refuse commits, or any before them that is new, that are larger than anything that work is."""
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
