"""Lines that know how they look. Anywhere but on a terminal each is the text it consists of, and nothing else."""

from collections.abc import Iterator
from typing import NamedTuple

from cli.drawing.looks import Look

FOLDED = "| "
"""Before what did not fit on a line and stands below it: no such part can be taken for a line of ours (ruling N6)."""


class Piece(NamedTuple):
    """Part of a line that looks the same throughout."""

    text: str
    look: Look = Look.PLAIN
    link: str = ""
    """An address of ours that a click on it opens."""


class Line(str):
    """A line of several pieces. As a text it is what it says; `say` draws it where there is a terminal.

    What does not fit stands on further lines, each behind `below`; without `below` the line is left as long as it is,
    as a command is that somebody copies.
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
    """A place on this machine, which a click opens."""
    from socket import gethostname
    from urllib.parse import quote

    return Piece(name, link=f"file://{gethostname()}{quote(name, safe='/', errors='surrogateescape')}")


def prose(text: str) -> Line:
    """A sentence that nobody copies as a whole: what does not fit stands below it, further in."""
    indent = len(text) - len(text.lstrip(" "))
    return Line(text, below=" " * (indent + 2) + FOLDED)


def pieces_of(line: str) -> tuple[Piece, ...]:
    """Those of a line, or the one that a plain text is."""
    return line.pieces if isinstance(line, Line) else (Piece(line),)


def part(pieces: tuple[Piece, ...], begin: int, end: int) -> Iterator[Piece]:
    """The pieces between two characters of the whole."""
    at = 0
    for piece in pieces:
        first, last = max(begin - at, 0), min(end - at, len(piece.text))
        if first < last:
            yield piece._replace(text=piece.text[first:last])
        at += len(piece.text)
