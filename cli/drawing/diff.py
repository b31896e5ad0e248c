"""A job's diff as coloured lines, as a table of files, or as file names."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import Piece, ScreenLine, Tone
from cli.drawing.output import hand_over, say
from workflows.text.invisible import PREFIX
from workflows.text.plurals import quantity

if TYPE_CHECKING:
    from bridge.operations.branches.diffs import JobDiff

_BEGINNINGS = (
    *("diff ", "index ", "@@", "+", "-", " ", "\\ No newline", "old mode ", "new mode ", "new file ", "deleted file "),
    *("similarity index ", "dissimilarity index ", "rename ", "copy ", "Binary files ", "GIT binary patch", "literal "),
    "delta ",
)
_TONES = (
    *(("diff ", Tone.STRONG), ("+++", Tone.STRONG), ("---", Tone.STRONG)),
    *(("@@", Tone.GOES), ("+", Tone.GOOD), ("-", Tone.BAD)),
)


def print_names(diff: "JobDiff") -> None:
    """Print the names of the changed files: to a program as raw bytes, to a person as text."""
    if sys.stdout.isatty():
        say(*(_readable(change.path) for change in diff.files)) if diff.files else None
    else:
        hand_over(change.path.encode("utf-8", "surrogateescape") + b"\n" for change in diff.files)


def _readable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def stat(diff: "JobDiff") -> Iterator[str]:
    files = [(change, _readable(change.path)) for change in diff.files]
    width = max((len(name) for _, name in files), default=0)
    for change, name in files:
        yield f"{name.ljust(width)}  {'binary' if change.added is None else f'+{change.added} -{change.removed}'}"
    added = sum(change.added or 0 for change, _ in files)
    removed = sum(change.removed or 0 for change, _ in files)
    yield f"{quantity(len(files), 'file')}, +{added} -{removed}"


def lines(diff: "JobDiff") -> Iterator[ScreenLine]:
    """Yield the diff line by line."""
    rest = b""
    for piece in diff.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(_line, lines)
    if rest:
        yield _line(rest)


def _line(raw: bytes) -> ScreenLine:
    """Colour a diff's line. Lines without a diff prefix are quoted."""
    text = raw.decode("utf-8", "backslashreplace")
    if text and not text.startswith(_BEGINNINGS):
        return ScreenLine(f"{PREFIX}{text}")
    return ScreenLine(Piece(text, next((tone for start, tone in _TONES if text.startswith(start)), Tone.PLAIN)))
