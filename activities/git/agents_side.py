"""What an agent left in the `.git` of its work folder, read as plain data: nothing of it is run or followed."""

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
    """Commits by their ids only; whether they exist, and are any good, is not known yet."""

    head: str | None = None
    """What is checked out there."""
    branch: str | None = None
    """Where the job's own branch is there."""
    merging: tuple[str, ...] = ()
    """What was being merged."""
    tracked: frozenset[str] = frozenset()
    """The files its index knows: one that is ignored counts all the same then."""
    fault: str = ""
    """Why it cannot be read."""

    def is_at(self, commit: str) -> bool:
        """Whether everything it names is this commit."""
        return not self.fault and {self.head, self.branch or self.head, *self.merging} == {commit}


def read(path: Path, branch: str | None) -> AgentsSide:
    """The `.git` of the work folder as it was left."""
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
