"""The `.git` of an agent's work folder: made for each run, and read afterwards as plain data (ruling N3).

It borrows the registered repository's objects, and copies its references so that an agent can read other branches. It
also has branches for the job's starting points (ruling O4). Its settings are harmless ones. The service runs and
follows nothing that the agent left in it.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from activities.git import plain_files
from activities.git.registered_repository import configuration, references
from activities.git.work_folder import service_git_dir
from activities.git.work_folder.index_file import IndexFileError, rows

NONE: Mapping[str, str] = MappingProxyType({})


def furnish(
    repo: Path,
    common: Path,
    path: Path,
    side: Path,
    commit: str,
    branch: str | None = None,
    names: Mapping[str, str] = NONE,
) -> None:
    """Make the `.git` of a work folder, replacing an older one: on the branch, or detached at the commit."""
    folder, fresh = path / ".git", side / "given"  # made where no agent writes, then moved into place at once
    remove(fresh)
    given = {f"refs/heads/{name}": end for name, end in names.items()}
    above = {str(folder) for name in given for folder in Path(name).parents}  # git can't have both `a` and `a/b`
    below = tuple(f"{name}/" for name in given)
    known = {name: end for name, end in references(common).items() if name not in above and not name.startswith(below)}
    known |= given
    if branch:
        known[f"refs/heads/{branch}"] = commit
    rows = [f"{each} {name}\n" for name, each in sorted(known.items())]
    files = {
        "packed-refs": os.fsencode("# pack-refs with: sorted \n" + "".join(rows)),
        "HEAD": os.fsencode(f"ref: refs/heads/{branch}\n" if branch else f"{commit}\n"),
        "config": configuration(repo),
        service_git_dir.ALTERNATES: service_git_dir.alternates(common),
    }
    folders = ("objects", "objects/info", "refs", "info")  # git makes other folders when it needs them, which is seldom
    service_git_dir.new_directory(fresh, folders, files)
    for name in ("info/exclude", "info/attributes", "shallow"):
        if service_git_dir.says_something(common / name):
            shutil.copyfile(common / name, fresh / name)
    if (side / "index").is_file():
        shutil.copyfile(side / "index", fresh / "index")
    remove(folder)
    fresh.rename(folder)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


MOST_REFERENCES = 64 << 20
MOST_INDEX = 256 << 20
_SMALL = 4096
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BRANCH = re.compile(r"refs/heads/(?!.*\.\.)(?!.*//)[^\0-\x20\x7f~^:?*\[\\]+")


@dataclass(frozen=True)
class AgentsSide:
    """The agent's commits, by id only: they may not exist, or be invalid."""

    head: str | None = None
    """The commit that is checked out."""
    branch: str | None = None
    """The commit of the job's own branch."""
    merging: tuple[str, ...] = ()
    """The commits that were being merged (MERGE_HEAD)."""
    tracked: frozenset[str] = frozenset()
    """The files in the agent's index: they count even if they are ignored."""
    fault: str = ""
    """The reason why the `.git` can't be read."""

    def is_at(self, commit: str) -> bool:
        """Return whether HEAD, the branch and any merge all name this commit."""
        return not self.fault and {self.head, self.branch or self.head, *self.merging} == {commit}


def read(path: Path, branch: str | None) -> AgentsSide:
    """Read the `.git` of a work folder."""
    try:
        with plain_files.folder_at(path) as top, plain_files.folder_below(top, ".git") as git:
            head = _head(git)
            own = _reference(git, f"refs/heads/{branch}") if branch else None
            merging = tuple(_COMMIT.findall(plain_files.text(git, "MERGE_HEAD", _SMALL) or ""))
            fault = "" if head else "its HEAD names no commit"
            return AgentsSide(head or own, own, merging, _tracked_files(git), fault)
    except FileNotFoundError:
        return AgentsSide(fault="it is gone")
    except OSError:
        return AgentsSide(fault="it is not a folder any more")


def _head(git: int) -> str | None:
    head = plain_files.text(git, "HEAD", _SMALL) or ""
    if head.startswith("ref:"):
        return _reference(git, head.removeprefix("ref:").strip())
    return head if _COMMIT.fullmatch(head) else None


def _reference(git: int, name: str) -> str | None:
    if not _BRANCH.fullmatch(name):
        return None
    commit = plain_files.text(git, name, _SMALL)
    if commit is not None:
        return commit if _COMMIT.fullmatch(commit) else None
    packed = plain_files.text(git, "packed-refs", MOST_REFERENCES) or ""
    commits = (row[:40] for row in packed.splitlines() if row[41:] == name and _COMMIT.fullmatch(row[:40]))
    return next(commits, None)


def _tracked_files(git: int) -> frozenset[str]:
    try:
        return frozenset(row.path for row in rows(plain_files.content(git, "index", MOST_INDEX)))
    except (OSError, IndexFileError):
        return frozenset()
