"""A diff as a page shows it: by file, with runs of lines grouped by kind (ruling M3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

_KINDS = (("@@", "hunk"), ("+", "add"), ("-", "cut"))


@dataclass(frozen=True)
class FilePatch:
    """One file of a diff: the counts of added and removed lines, and the lines grouped by kind."""

    path: str
    added: int
    removed: int
    parts: tuple[tuple[str, str], ...]
    """`add`, `cut`, `hunk` or `same`, and their lines."""


def beginning(pieces: Iterable[bytes], limit: int) -> tuple[str, bool]:
    """Return whole lines of at most so many bytes, and whether the text was cut."""
    taken = b""
    for piece in pieces:
        taken += piece
        if len(taken) > limit:
            break
    if len(taken) <= limit:
        return taken.decode("utf-8", "backslashreplace"), False
    whole = taken[:limit].rpartition(b"\n")[0] or taken[:limit]
    return whole.decode("utf-8", "backslashreplace"), True


def files(diff: str) -> tuple[FilePatch, ...]:
    """Parse the files of a diff."""
    begun: list[list[str]] = []
    for line in diff.removesuffix("\n").split("\n"):
        if line.startswith("diff --git "):
            begun.append([])
        if begun:
            begun[-1].append(line)
    return tuple(map(_file, begun))


def _file(lines: list[str]) -> FilePatch:
    first = next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    kinds = [*(("same", line) for line in lines[1:first]), *((_kind(line), line) for line in lines[first:])]
    parts = tuple((kind, "\n".join(line for _, line in of)) for kind, of in groupby(kinds, lambda each: each[0]))
    counts = [kind for kind, _ in kinds]
    return FilePatch(_path(lines[0]), counts.count("add"), counts.count("cut"), parts)


def _kind(line: str) -> str:
    return next((kind for start, kind in _KINDS if line.startswith(start)), "same")


def _path(header: str) -> str:
    """Return the new path of a line `diff --git a/old b/new`, whatever blanks are in it."""
    names = header.removeprefix("diff --git ")
    half = len(names) // 2
    same = names[:half].strip('"').removeprefix("a/") == names[half + 1 :].strip('"').removeprefix("b/")
    return names[half + 1 :].strip('"').removeprefix("b/") if same else names.rpartition("b/")[2].strip('"')
