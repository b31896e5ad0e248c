"""Lines with colours and folding marks, which appear only on a terminal; as strings they are plain text."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from cli.drawing.widths import padded, width
from workflows.text.invisible import one_line, prefix_lines

FOLDED = "| "
"""The prefix of continuation lines: no part of a folded line can be taken for a line of ours (ruling N6)."""


class Look(StrEnum):
    """The look of a text by its meaning; the value is the number of the escape sequence for it."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    """Secondary, no longer valid, or not yet."""
    BAD = "31"
    GOOD = "32"
    ASKS = "1;35"
    """A person must answer."""
    GOES = "36"
    STUCK = "1;31"
    """Nothing continues before somebody acts."""


END = "\x1b[0m"
_STATES = {
    **dict.fromkeys(
        ("succeeded", "done", "approved", "implemented", "answered", "confirmed", "ok", "yes", "works", "merged"),
        Look.GOOD,
    ),
    **dict.fromkeys(
        ("running", "starting", "open", "active", "being worked on", "unmerged", "ending", "draining"), Look.GOES
    ),
    **dict.fromkeys(("queued", "pending", "skipped", "cancelled", "retired", "closed", "stopped", "-"), Look.QUIET),
    **dict.fromkeys(("not made yet", "no commits", "dropped", "gone"), Look.QUIET),
    **dict.fromkeys(
        ("failed", "error", "wrong", "no", "rejected", "changes_requested", "unseen", "lost", "cut short"), Look.BAD
    ),
    **dict.fromkeys(("awaiting_human", "waiting for you", "asks you", "warning", "warn", "held"), Look.ASKS),
    "blocked": Look.STUCK,
}
OF_MARKS = {"·": "queued", "▶": "running", "✔": "succeeded", "✘": "failed", "■": "blocked", "○": "cancelled"} | {
    "-": "skipped",
    "⏸": "awaiting_human",
}
"""The state of each shape."""


def of_state(word: str) -> Look:
    """Return the look of a state; plain if the state is unknown."""
    return _STATES.get(word, Look.PLAIN)


class Piece(NamedTuple):
    """Part of a line with one look."""

    text: str
    look: Look = Look.PLAIN
    link: str = ""
    """An address of ours that a click opens."""


class Line(str):
    """A line of several pieces. As a string it is plain text; `say` draws it on a terminal.

    What does not fit continues on further lines, each prefixed with `below`; without `below` the line is never folded,
    as for a command that somebody copies.
    """

    __slots__ = ("below", "pieces")
    pieces: tuple[Piece, ...]
    below: str | None

    def __new__(cls, *pieces: Piece | str, below: str | None = None) -> "Line":
        whole = tuple(piece if isinstance(piece, Piece) else Piece(piece) for piece in pieces)
        line = super().__new__(cls, "".join(piece.text for piece in whole))
        line.pieces, line.below = whole, below
        return line


def path(name: str) -> Piece:
    """Return a local path that opens on a click."""
    from socket import gethostname
    from urllib.parse import quote

    return Piece(name, link=f"file://{gethostname()}{quote(name, safe='/', errors='surrogateescape')}")


def prose(text: str) -> Line:
    """Return a sentence as a line that is folded with an indent, since nobody copies it as a whole."""
    indent = len(text) - len(text.lstrip(" "))
    return Line(text, below=" " * (indent + 2) + FOLDED)


def pieces_of(line: str) -> tuple[Piece, ...]:
    """Return the pieces of a line; a plain string is one piece."""
    return line.pieces if isinstance(line, Line) else (Piece(line),)


def part(pieces: tuple[Piece, ...], begin: int, end: int) -> Iterator[Piece]:
    """Yield the pieces between two positions of the line."""
    at = 0
    for piece in pieces:
        first, last = max(begin - at, 0), min(end - at, len(piece.text))
        if first < last:
            yield piece._replace(text=piece.text[first:last])
        at += len(piece.text)


def in_fields(fields: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield a line per field; a value of several lines follows below its name.

    A `Line` keeps its own looks, and is folded only if it says so.
    """
    shown = [(name, value if isinstance(value, Line) else str(value)) for name, value in fields if _is_said(value)]
    columns = max((width(one_line(name)) for name, _ in shown), default=0)
    for name, value in shown:
        if "\n" in value.rstrip("\n"):
            yield from (Line(Piece(one_line(name), Look.STRONG)), *prefix_lines(value))
        else:
            looked = value if isinstance(value, Line) else Line(value.rstrip(), below=FOLDED)
            head = Piece(padded(one_line(name), columns), Look.STRONG)
            below = None if looked.below is None else " " * columns + FOLDED
            yield Line(head, "  ", *looked.pieces, below=below)


def _is_said(value: object) -> bool:
    return value not in (None, "", (), [])


def headed(head: str, text: str) -> list[str]:
    """Return foreign text behind a heading of the service, or below the heading if the text has several lines."""
    text = text.rstrip("\n")
    return [head, *prefix_lines(text)] if "\n" in text else [prose(f"{head} {text}")]


_BRANCHES = " │├└─"


def tree_line(line: str, label: str = "") -> Line:
    """Return one job's line with coloured branches, mark and state; it is folded if it does not fit.

    `label` is how the line calls the state, if not by its own word.
    """
    rest = line.lstrip(_BRANCHES)
    stem = line[: len(line) - len(rest)]
    state = OF_MARKS.get(rest[:1], "")
    below = stem.replace("├─", "│ ").replace("└─", "  ") + "  " + FOLDED
    if not state:
        return Line(line, below=below)
    return Line(
        Piece(stem, Look.QUIET), Piece(rest[0], of_state(state)), *_marked(rest[1:], label or state), below=below
    )


def state_line(line: str, state: str) -> Line:
    """Return a line with the first occurrence of the state's word coloured."""
    return Line(*_marked(line, state), below="  " + FOLDED)


def _marked(text: str, state: str) -> tuple[Piece | str, ...]:
    before, word, after = text.partition(state)
    return before, Piece(word, of_state(state)), after
