"""Lines of output with colours and wrap prefixes. A terminal shows both; `str` gives the plain text."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from cli.drawing.widths import pad, width
from workflows.text.invisible import one_line, prefix_lines

FOLDED = "| "
"""The prefix of continuation lines, so that no part of a wrapped line passes for a line of the service (ruling N6)."""


class Tone(StrEnum):
    """The tone of a text by its meaning. The value is the parameter of its escape sequence."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    """Secondary, outdated, or still to come."""
    BAD = "31"
    GOOD = "32"
    ASKS = "1;35"
    """A person must answer."""
    GOES = "36"
    STUCK = "1;31"
    """The work is stuck until somebody acts."""


END = "\x1b[0m"
_STATES = {
    **dict.fromkeys(
        ("succeeded", "done", "approved", "changes made", "answered", "confirmed", "ok", "yes", "works", "merged"),
        Tone.GOOD,
    ),
    **dict.fromkeys(
        ("running", "starting", "open", "active", "being worked on", "unmerged", "ending", "draining"), Tone.GOES
    ),
    **dict.fromkeys(("queued", "pending", "skipped", "cancelled", "retired", "closed", "stopped", "-"), Tone.QUIET),
    **dict.fromkeys(("not made yet", "no commits", "dropped", "gone"), Tone.QUIET),
    **dict.fromkeys(
        ("failed", "error", "wrong", "no", "rejected", "changes requested", "unseen", "lost", "cut short"), Tone.BAD
    ),
    **dict.fromkeys(("awaiting_human", "needs you", "asks you", "warning", "warn", "held"), Tone.ASKS),
    "blocked": Tone.STUCK,
}
OF_MARKS = {"·": "queued", "▶": "running", "✔": "succeeded", "✘": "failed", "■": "blocked", "○": "cancelled"} | {
    "-": "skipped",
    "⏸": "awaiting_human",
}
"""The state that each mark of a tree view stands for."""


def of_state(word: str) -> Tone:
    """Return the tone of a job's or task's state; plain if the state is unknown."""
    return _STATES.get(word, Tone.PLAIN)


class Piece(NamedTuple):
    """Part of a line with one tone."""

    text: str
    tone: Tone = Tone.PLAIN
    link: str = ""
    """An address of the service that a click opens."""


class ScreenLine(str):
    """A line of several pieces. As a string it is plain text; `say` draws it on a terminal.

    A line that does not fit continues on further lines, each prefixed with `below`. Without `below` it is never folded:
    a command must stay easy to copy.
    """

    __slots__ = ("below", "pieces")
    pieces: tuple[Piece, ...]
    below: str | None

    def __new__(cls, *pieces: Piece | str, below: str | None = None) -> "ScreenLine":
        whole = tuple(piece if isinstance(piece, Piece) else Piece(piece) for piece in pieces)
        line = super().__new__(cls, "".join(piece.text for piece in whole))
        line.pieces, line.below = whole, below
        return line


def path(name: str) -> Piece:
    """Return a local path as a link that opens on a click."""
    from socket import gethostname
    from urllib.parse import quote

    return Piece(name, link=f"file://{gethostname()}{quote(name, safe='/', errors='surrogateescape')}")


def prose(text: str) -> ScreenLine:
    """Return a sentence as a line that wraps with an indent, since people don't copy sentences as a whole."""
    indent = len(text) - len(text.lstrip(" "))
    return ScreenLine(text, below=" " * (indent + 2) + FOLDED)


def pieces_of(line: str) -> tuple[Piece, ...]:
    """Return the pieces of a line; a plain string is one piece."""
    return line.pieces if isinstance(line, ScreenLine) else (Piece(line),)


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

    A value that is a `ScreenLine` keeps its looks and its rule of folding.
    """
    shown = [
        (name, value if isinstance(value, ScreenLine) else str(value)) for name, value in fields if _is_said(value)
    ]
    columns = max((width(one_line(name)) for name, _ in shown), default=0)
    for name, value in shown:
        if "\n" in value.rstrip("\n"):
            yield from (ScreenLine(Piece(one_line(name), Tone.STRONG)), *prefix_lines(value))
        else:
            looked = value if isinstance(value, ScreenLine) else ScreenLine(value.rstrip(), below=FOLDED)
            head = Piece(pad(one_line(name), columns), Tone.STRONG)
            below = None if looked.below is None else " " * columns + FOLDED
            yield ScreenLine(head, "  ", *looked.pieces, below=below)


def _is_said(value: object) -> bool:
    return value not in (None, "", (), [])


def with_head(head: str, text: str) -> list[str]:
    """Return foreign text behind a heading of the service, or below the heading if the text has several lines."""
    text = text.rstrip("\n")
    return [head, *prefix_lines(text)] if "\n" in text else [prose(f"{head} {text}")]


_BRANCHES = " │├└─"


def tree_line(line: str, label: str = "") -> ScreenLine:
    """Return one job's line with coloured branches, mark and state; it is folded if it does not fit.

    `label` is the word for the state in this line, if it is not the state itself.
    """
    rest = line.lstrip(_BRANCHES)
    stem = line[: len(line) - len(rest)]
    state = OF_MARKS.get(rest[:1], "")
    below = stem.replace("├─", "│ ").replace("└─", "  ") + "  " + FOLDED
    if not state:
        return ScreenLine(line, below=below)
    return ScreenLine(
        Piece(stem, Tone.QUIET), Piece(rest[0], of_state(state)), *_mark(rest[1:], label or state), below=below
    )


def state_line(line: str, state: str) -> ScreenLine:
    """Return a line with the first occurrence of the state's word coloured."""
    return ScreenLine(*_mark(line, state), below="  " + FOLDED)


def _mark(text: str, state: str) -> tuple[Piece | str, ...]:
    before, word, after = text.partition(state)
    return before, Piece(word, of_state(state)), after
