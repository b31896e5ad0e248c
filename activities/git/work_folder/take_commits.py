"""Take over an agent's commits: copy them as data, then fetch them with every object checked (ruling N3).

Only plain object files of the agent's `.git` are read. They are copied into a repository of the service that borrows
only from the registered repository. Git then reads them as if they came from a stranger. `CommitCheck` refuses commits
that are too large to check out: a small tree can list the same tree a million times.
"""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from activities.git import plain_files
from activities.git.command import GitError, git, more_config, printable
from activities.git.library import library
from activities.git.work_folder.service_git_dir import lend, side_of
from activities.git.work_folder.walk import MOST_LEVELS
from workflows.model.errors import RefusedError

if TYPE_CHECKING:
    from pygit2 import Odb, Oid, Repository


FETCH_SECONDS = 300.0
MOST_BYTES = 2 << 30
"""Size limit of all objects of an agent."""

MOST_FILES = 500_000

_LOOSE = re.compile(r"[0-9a-f]{2}")
_LOOSE_FILE = re.compile(r"[0-9a-f]{38}")
_PACK_FILE = re.compile(r"pack-[0-9a-f]{40}\.(?:pack|idx)")
_CONFIG = "[core]\n\tbare = true\n\trepositoryformatversion = 0\n[uploadpack]\n\tallowAnySHA1InWant = true\n"
_CHECKED = {
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "core.logAllRefUpdates": "false",
}
_AS_THEY_ARE = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull, "GIT_NO_LAZY_FETCH": "1"}
_OPTIONS = (
    *("--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head", "--no-recurse-submodules"),
    *("--no-auto-maintenance", "--upload-pack=git-upload-pack"),
)


def take_over(path: Path, common: Path, commits: Collection[str]) -> None:
    """Fetch the commits and all their objects into the service's git directory of the work folder, or refuse them."""
    side = side_of(path)
    with _copy_of_objects(path, common) as source:
        try:
            command = ("fetch", *_OPTIONS, "--", str(source), *sorted(set(commits)))
            env = _AS_THEY_ARE | more_config(_CHECKED)
            git(side, *command, env=env, seconds=FETCH_SECONDS)
        except GitError as error:
            message = error.output.replace(str(source), ".git")
            where = printable(str(path))
            fsck = f"git -C {where} fsck"
            raise RefusedError(f"what was committed there does not pass git's check: {message}", fsck) from None


@contextmanager
def _copy_of_objects(path: Path, common: Path) -> Iterator[Path]:
    """Copy the agent's objects into a temporary repository without anything else from the agent."""
    folder = Path(tempfile.mkdtemp(prefix="taken-", dir=side_of(path)))
    try:
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text(_CONFIG)
        lend(common, folder)
        if (side_of(path) / "shallow").is_file():
            shutil.copyfile(side_of(path) / "shallow", folder / "shallow")
        _copy_objects(path, folder / "objects")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_objects(path: Path, target: Path) -> None:
    budget = _Budget(path)
    with plain_files.folder_at(path) as top, plain_files.folder_below(top, ".git/objects") as objects:
        for name in os.listdir(objects):
            if name == "pack" or _LOOSE.fullmatch(name):
                wanted = _PACK_FILE if name == "pack" else _LOOSE_FILE
                with plain_files.folder_below(objects, name) as folder:
                    _copy_files(folder, wanted, target / name, budget)


def _copy_files(folder: int, wanted: re.Pattern[str], target: Path, budget: "_Budget") -> None:
    target.mkdir(exist_ok=True)
    with os.scandir(folder) as listing:
        for entry in listing:
            if wanted.fullmatch(entry.name) and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                with plain_files.file_below(folder, entry.name, MOST_BYTES) as source:
                    budget.spend(plain_files.copy(source, target / entry.name, budget.left))


class _Budget:
    """The bytes and the number of files that may still be copied."""

    def __init__(self, path: Path) -> None:
        self._path, self.left, self._files = path, MOST_BYTES, MOST_FILES

    def spend(self, copied: int) -> None:
        self.left -= copied
        self._files -= 1
        if self.left <= 0 or self._files <= 0:
            where = printable(str(self._path))
            raise RefusedError(
                f"what was committed there is more than is taken over ({MOST_BYTES >> 30} GiB, {MOST_FILES} files)",
                f"git -C {where} count-objects -vH",
            )


MOST_TREE_FILES = 2_000_000
MOST_COMMITS = 100_000
LARGEST_FILE = 512 << 20
"""Size limit of one file."""


@dataclass
class CommitCheck:
    """The check of commits, with the number of files and levels of folders of the trees seen so far."""

    repository: "Repository"
    known: "Odb"
    """Objects that existed before: their files are not checked."""
    trees: "dict[Oid, tuple[int, int]]" = field(default_factory=dict)

    def check(self, commits: "list[Oid]") -> None:
        """Refuse commits, and new ones among their ancestors, that exceed the limits."""
        waiting, seen = list(commits), set()
        while waiting:
            oid = waiting.pop()
            if oid in seen or oid in self.known:
                continue
            seen.add(oid)
            if len(seen) > MOST_COMMITS:
                raise _refusal(f"more than {MOST_COMMITS} commits")
            commit = self.repository[oid].peel(library().Commit)
            self._tree(commit.tree_id)
            waiting += commit.parent_ids

    def _tree(self, top: "Oid") -> None:
        waiting = [top]
        while waiting:
            oid = waiting[-1]
            entries = [] if oid in self.trees else list(self.repository[oid].peel(library().Tree))
            below = [entry.id for entry in entries if entry.type_str == "tree"]
            if missing := [tree for tree in below if tree not in self.trees]:
                if len(waiting) > MOST_LEVELS:
                    raise _refusal(f"more than {MOST_LEVELS} levels of folders")
                waiting.append(missing[0])
                continue
            waiting.pop()
            if oid not in self.trees:
                for entry in entries:
                    self._file(entry.id, entry.type_str)
                files = len(entries) - len(below) + sum(self.trees[tree][0] for tree in below)
                levels = 1 + max((self.trees[tree][1] for tree in below), default=0)
                self._fits(oid, files, levels)

    def _fits(self, tree: "Oid", files: int, levels: int) -> None:
        if files > MOST_TREE_FILES:
            raise _refusal(f"more than {MOST_TREE_FILES} files")
        if levels > MOST_LEVELS:
            raise _refusal(f"more than {MOST_LEVELS} levels of folders")
        self.trees[tree] = files, levels

    def _file(self, stored: "Oid", kind: str) -> None:
        if kind == "blob" and stored not in self.known:
            _, size = self.repository.odb.read_header(stored)
            if size > LARGEST_FILE:
                raise _refusal(f"a file of more than {LARGEST_FILE >> 20} MiB")


def _refusal(what: str) -> RefusedError:
    return RefusedError(f"what was committed there has {what}", "git log --stat, in the folder it was left in")
