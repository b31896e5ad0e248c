"""Diffs between two commits of a job, and a reader of stored diffs."""

import re
from collections.abc import Iterator
from pathlib import Path

from activities.git.branches import FileChange
from activities.git.command import git_stream

_HEADER = re.compile(r'diff --git (?:"a/.*"|a/.*?) (?:"b/(?P<quoted>.*)"|b/(?P<plain>.*))')
_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--submodule=short")


def patch(repo: Path, base: str, head: str, *, binary: bool) -> Iterator[bytes]:
    """Yield the diff in pieces; with `binary` it can be applied whatever files it has."""
    yield from git_stream(repo, "diff", *_OPTIONS, *(("--binary",) if binary else ()), base, head)


def changes_of(text: str) -> tuple[FileChange, ...]:
    """Return the files of a diff with their added and removed lines."""
    found: list[FileChange] = []
    in_hunk = False
    for row in text.splitlines():
        if header := _HEADER.fullmatch(row):
            found.append(FileChange(header["quoted"] or header["plain"], 0, 0))
            in_hunk = False
        elif found and row.startswith("Binary files "):
            found[-1] = FileChange(found[-1].path, None, None)
        elif row.startswith("@@ "):
            in_hunk = True
        elif found and in_hunk and row[:1] in {"+", "-"}:
            change, plus = found[-1], row[0] == "+"
            found[-1] = FileChange(change.path, (change.added or 0) + plus, (change.removed or 0) + (not plus))
    return tuple(found)
