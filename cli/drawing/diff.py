"""The diff of a job: as lines with colours, as a table of its files, and as their names."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import Line, Look, Piece
from cli.drawing.output import hand_over, say
from workflows.text.invisible import PREFIX

if TYPE_CHECKING:
    from bridge.operations.branches.diffs import JobDiff

_BEGINNINGS = (
    *("diff ", "index ", "@@", "+", "-", " ", "\\ No newline", "old mode ", "new mode ", "new file ", "deleted file "),
    *("similarity index ", "dissimilarity index ", "rename ", "copy ", "Binary files ", "GIT binary patch", "literal "),
    "delta ",
)
_LOOKS = (
    *(("diff ", Look.STRONG), ("+++", Look.STRONG), ("---", Look.STRONG)),
    *(("@@", Look.GOES), ("+", Look.GOOD), ("-", Look.BAD)),
)


def print_names(found: "JobDiff") -> None:
    """Print names to a program as raw bytes, and to a person as text."""
    if sys.stdout.isatty():
        say(*(_shown(change.path) for change in found.files)) if found.files else None
    else:
        hand_over(change.path.encode("utf-8", "surrogateescape") + b"\n" for change in found.files)


def _shown(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def stat(found: "JobDiff") -> Iterator[str]:
    files = [(each, _shown(each.path)) for each in found.files]
    width = max((len(name) for _, name in files), default=0)
    for each, name in files:
        yield f"{name.ljust(width)}  {'binary' if each.added is None else f'+{each.added} -{each.removed}'}"
    added = sum(each.added or 0 for each, _ in files)
    removed = sum(each.removed or 0 for each, _ in files)
    yield f"{len(files)} file(s), +{added} -{removed}"


def lines(found: "JobDiff") -> Iterator[Line]:
    """Yield the diff line by line."""
    rest = b""
    for piece in found.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(_line, lines)
    if rest:
        yield _line(rest)


def _line(raw: bytes) -> Line:
    """Colour a diff's line. Lines without a diff prefix are quoted."""
    text = raw.decode("utf-8", "backslashreplace")
    if text and not text.startswith(_BEGINNINGS):
        return Line(f"{PREFIX}{text}")
    return Line(Piece(text, next((look for start, look in _LOOKS if text.startswith(start)), Look.PLAIN)))
