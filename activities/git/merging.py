"""Merging two commits in the object store: by libgit2, and where it finds a conflict, as git does it (ruling I5).

Git knows more kinds of renames, and the merges that attributes ask for; so it has the last word on conflicts, where
there is a git. It works in a repository of the service's that has objects and nothing else.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from activities.git.branches import reading
from activities.git.command import GitError, answer, paths
from activities.git.library import library, signature
from activities.git.own_side import lend
from activities.git.registered import common_directory

if TYPE_CHECKING:
    from pygit2 import Oid, Repository

CONFIG = "[core]\n\tbare = true\n\trepositoryformatversion = 0\n"


@dataclass(frozen=True)
class Conflict:
    """The files that two commits change in ways that do not go together."""

    files: tuple[str, ...]


def merged_tree(repo: Path, ours: str, theirs: str) -> str | Conflict:
    """The tree of a merge, in the registered repository; or what stands against it."""
    with reading(repo) as repository:
        tree = _by_library(repository, ours, theirs)
    return tree or _by_git(repo, ours, theirs)


def _by_library(repository: "Repository", ours: str, theirs: str) -> str | None:
    kind = library().Commit
    ends = (repository.revparse_single(each).peel(kind).id for each in (ours, theirs))
    index = repository.merge_commits(*ends)
    return None if index.conflicts is not None else str(index.write_tree(repository))


def _by_git(repo: Path, ours: str, theirs: str) -> str | Conflict:
    with bare_reader(repo) as reader:
        command = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
        env = {"GIT_ATTR_SOURCE": ours, "GIT_OBJECT_DIRECTORY": str(common_directory(repo) / "objects")}
        try:
            clean, said = answer(reader, *command, env=env)
        except (GitError, OSError):
            return _conflict(repo, ours, theirs)
    tree, *files = paths(said)
    if clean:
        return tree
    # where one has a file and the other a folder, git calls the file after the commit it is from
    return Conflict(tuple(dict.fromkeys(each.removesuffix(f"~{ours}").removesuffix(f"~{theirs}") for each in files)))


def _conflict(repo: Path, ours: str, theirs: str) -> Conflict:
    """The files as libgit2 names them: there is no git, or none that merges without a checkout."""
    with reading(repo) as repository:
        kind = library().Commit
        ends = (repository.revparse_single(each).peel(kind).id for each in (ours, theirs))
        sides = repository.merge_commits(*ends).conflicts or ()
        found = {os.fsdecode(side.path) for three in sides for side in three if side is not None}
        return Conflict(tuple(sorted(found)))


@contextlib.contextmanager
def bare_reader(repo: Path) -> Iterator[Path]:
    """A repository with the objects of another and nothing else of it: for what only git does."""
    folder = Path(tempfile.mkdtemp(prefix="service-git-"))
    try:
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text(CONFIG)
        common = common_directory(repo)
        lend(common, folder)
        if (common / "shallow").is_file():
            shutil.copyfile(common / "shallow", folder / "shallow")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def commit_merge(repo: Path, tree: str, parents: "tuple[str, str]", message: str) -> str:
    """Make a merge commit of the service's, on no branch yet. Its time is that of the later parent.

    So who merges the same once more, on another day or another host, has the same commit.
    """
    pygit2 = library()
    with reading(repo) as repository:
        ids: list[Oid] = [pygit2.Oid(hex=each) for each in parents]
        at = max(repository[each].peel(pygit2.Commit).commit_time for each in ids)
        text, who = message.encode("utf-8", "replace").decode(), signature(at)
        return str(repository.create_commit(None, who, who, text, pygit2.Oid(hex=tree), ids))
