"""Lines that know their looks. Except on a terminal, each is plain text."""

from collections.abc import Iterator
from typing import NamedTuple

from cli.drawing.looks import Look

FOLDED = "| "
"""The prefix of continuation lines: no part of a folded line can be taken for a line of ours (ruling N6)."""


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
    """Return a sentence that nobody copies as a whole: it is folded, with an indent."""
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
