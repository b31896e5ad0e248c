"""The `.git` that an agent left in its work folder, read as plain data: nothing in it is run or followed."""

import re
from dataclasses import dataclass
from pathlib import Path

from activities.git import plain_files
from activities.git.index_file import IndexFileError, rows

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
            return AgentsSide(head or own, own, merging, _tracked(git), fault)
    except FileNotFoundError:
        return AgentsSide(fault="it is gone")
    except OSError:
        return AgentsSide(fault="it is no folder any more")


def _head(git: int) -> str | None:
    said = plain_files.text(git, "HEAD", _SMALL) or ""
    if said.startswith("ref:"):
        return _reference(git, said.removeprefix("ref:").strip())
    return said if _COMMIT.fullmatch(said) else None


def _reference(git: int, name: str) -> str | None:
    if not _BRANCH.fullmatch(name):
        return None
    said = plain_files.text(git, name, _SMALL)
    if said is not None:
        return said if _COMMIT.fullmatch(said) else None
    packed = plain_files.text(git, "packed-refs", MOST_REFERENCES) or ""
    found = (row[:40] for row in packed.splitlines() if row[41:] == name and _COMMIT.fullmatch(row[:40]))
    return next(found, None)


def _tracked(git: int) -> frozenset[str]:
    try:
        return frozenset(row.path for row in rows(plain_files.content(git, "index", MOST_INDEX)))
    except (OSError, IndexFileError):
        return frozenset()
