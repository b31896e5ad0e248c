"""Merge two commits in the object store: by libgit2, and if it finds a conflict, by git (ruling I5).

Git knows more kinds of renames, and merges by attributes, so it decides on conflicts if it is installed. The git
commands run in a repository of the service, which has objects but no references, work tree or settings.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from activities.git.command import GitError, answer, paths
from activities.git.git_branches import reading
from activities.git.library import library, signature
from activities.git.registered_repository import common_directory
from activities.git.work_folder.service_git_dir import lend

if TYPE_CHECKING:
    from pygit2 import Oid, Repository

CONFIG = "[core]\n\tbare = true\n\trepositoryformatversion = 0\n"


@dataclass(frozen=True)
class CommitConflict:
    """The files of two commits that conflict."""

    files: tuple[str, ...]
    tree: str = field(default="", compare=False)
    """The tree of the merge, with conflict markers; empty if git is missing."""


def merged_tree(repo: Path, ours: str, theirs: str) -> str | CommitConflict:
    """Return the tree of a merge, or the conflict."""
    with reading(repo) as repository:
        tree = _by_library(repository, ours, theirs)
    return tree or _by_git(repo, ours, theirs)


def _by_library(repository: "Repository", ours: str, theirs: str) -> str | None:
    kind = library().Commit
    ends = (repository.revparse_single(each).peel(kind).id for each in (ours, theirs))
    index = repository.merge_commits(*ends)
    return None if index.conflicts is not None else str(index.write_tree(repository))


def _by_git(repo: Path, ours: str, theirs: str) -> str | CommitConflict:
    with bare_reader(repo) as reader:
        command = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
        env = {"GIT_ATTR_SOURCE": ours, "GIT_OBJECT_DIRECTORY": str(common_directory(repo) / "objects")}
        try:
            clean, output = answer(reader, *command, env=env)
        except (GitError, OSError):
            return _conflict(repo, ours, theirs)
    tree, *files = paths(output)
    if clean:
        return tree
    # if one side has a file and the other a folder, git adds the file's commit to its name
    names = dict.fromkeys(each.removesuffix(f"~{ours}").removesuffix(f"~{theirs}") for each in files)
    return CommitConflict(tuple(names), tree)


def _conflict(repo: Path, ours: str, theirs: str) -> CommitConflict:
    """List the conflicting files by libgit2: git is missing, or can't merge without a checkout."""
    with reading(repo) as repository:
        kind = library().Commit
        ends = (repository.revparse_single(each).peel(kind).id for each in (ours, theirs))
        sides = repository.merge_commits(*ends).conflicts or ()
        files = {os.fsdecode(side.path) for three in sides for side in three if side is not None}
        return CommitConflict(tuple(sorted(files)))


@contextlib.contextmanager
def bare_reader(repo: Path) -> Iterator[Path]:
    """Make a temporary repository that borrows the objects of another and has nothing else, for work that needs the git
    program.
    """
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
    """Make a merge commit that is on no branch yet, with the time of the later parent.

    So the same merge has the same commit id on another day or host.
    """
    pygit2 = library()
    with reading(repo) as repository:
        ids: list[Oid] = [pygit2.Oid(hex=each) for each in parents]
        at = max(repository[each].peel(pygit2.Commit).commit_time for each in ids)
        text, who = message.encode("utf-8", "replace").decode(), signature(at)
        return str(repository.create_commit(None, who, who, text, pygit2.Oid(hex=tree), ids))
