"""The capabilities of a stream (plain text, colours, links), and the drawing of a line on it."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cli.drawing.lines import END, Piece, ScreenLine, Tone, part, pieces_of
from workflows.text.invisible import PREFIX, one_line

if TYPE_CHECKING:
    from typing import TextIO

_ADDRESS = r"(?a:(https?|file)://[\w.~:/?#@!$&'()*+,;=%\[\]-]+)"
_LINK = "\x1b]8;;{}\x1b\\{}\x1b]8;;\x1b\\"
_USUAL = (80, 24)
_PLAIN = ("", "dumb", "unknown")
_NARROWEST = 20
"""Least width that is used for folding and cutting."""


class Screen(NamedTuple):
    """A terminal, or a stream for which colours are forced."""

    width: int | None
    """None if unknown, as for a file or a pipe with forced colours."""
    height: int = 24
    colours: bool = True
    links: bool = False


def screen_of(stream: "TextIO", environment: Mapping[str, str] = os.environ) -> Screen | None:
    """Return the screen of a stream; None if only plain text is wanted."""
    try:
        on_terminal = stream.isatty()
    except ValueError:  # the stream is closed
        return None
    refused = bool(environment.get("NO_COLOR")) or environment.get("CLICOLOR") == "0"
    if not on_terminal:
        return Screen(None) if _forces_colours(environment) and not refused else None
    terminal = environment.get("TERM", "")
    if terminal in _PLAIN:
        return None
    columns, lines = _size(stream)
    return Screen(max(columns, _NARROWEST), lines, not refused, terminal != "linux")


def can_move(stream: "TextIO") -> bool:
    """Return whether the stream is a terminal that can be redrawn in place."""
    screen = screen_of(stream)
    return screen is not None and screen.width is not None


def _size(stream: "TextIO") -> tuple[int, int]:
    """Return the terminal's size. Ask the terminal, since the environment may be that of another process."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return _USUAL
    return size.columns or _USUAL[0], size.lines or _USUAL[1]


def _forces_colours(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))


def rows_of(line: str, screen: Screen) -> Iterator[str]:
    """Yield the lines that a line takes on the screen. Their only control characters are our own sequences (ruling
    N6).
    """
    from cli.drawing.widths import folds, width

    pieces = tuple(piece._replace(text=one_line(piece.text)) for piece in pieces_of(line))
    below = line.below if isinstance(line, ScreenLine) else PREFIX if line.startswith(PREFIX) else None
    whole = "".join(piece.text for piece in pieces)
    if below is None or screen.width is None or width(whole) <= screen.width:
        yield _paint_all(pieces, screen)
        return
    if 2 * width(below) > screen.width:
        below = PREFIX
    for number, (begin, end) in enumerate(folds(whole, screen.width, width(below))):
        row = tuple(part(pieces, begin, end))
        yield _paint_all((Piece(below, Tone.QUIET), *row) if number else row, screen)


def on_one_line(line: str, screen: Screen) -> str:
    """Draw a line on a single screen line, and cut what does not fit."""
    from cli.drawing.widths import cut, width

    pieces = tuple(piece._replace(text=one_line(piece.text)) for piece in pieces_of(line))
    whole = "".join(piece.text for piece in pieces)
    if screen.width is not None and width(whole) > screen.width:
        kept = cut(whole, screen.width)
        pieces = (*part(pieces, 0, len(kept) - 1), Piece(kept[-1]))
    return _paint_all(pieces, screen)


def _paint_all(pieces: tuple[Piece, ...], screen: Screen) -> str:
    return "".join(_paint(piece, screen) for piece in pieces)


def _paint(piece: Piece, screen: Screen) -> str:
    text = piece.text
    if screen.colours and piece.tone and text.strip():
        text = f"\x1b[{piece.tone.value}m{text}{END}"
    if screen.links and piece.link and re.fullmatch(_ADDRESS, piece.link):
        text = _LINK.format(piece.link, text)
    return text
