"""What a terminal is, how large it is now, and how its lines are made to fit."""

import os
from collections.abc import Iterator
from typing import TextIO

from workflows.contract.visible import one_line

_USUAL = os.terminal_size((80, 24))
_WITHOUT_CURSOR = ("", "dumb", "unknown")


def can_draw(stream: TextIO) -> bool:
    """Whether this is a terminal on which the cursor can be moved."""
    return stream.isatty() and os.environ.get("TERM", "") not in _WITHOUT_CURSOR


def size_of(stream: TextIO) -> os.terminal_size:
    """As it is now, in whatever process we are: asked of the terminal itself, not of a signal or of `COLUMNS`."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return _USUAL
    return os.terminal_size((found.columns or _USUAL.columns, found.lines or _USUAL.lines))


def cut(text: str, columns: int) -> str:
    """As much of a line as fits."""
    from rich.cells import cell_len, chop_cells

    line = one_line(text)
    if cell_len(line) <= columns:
        return line
    return f"{chop_cells(line, columns - 1)[0]}…" if columns > 1 else "…"


def folded(text: str, columns: int) -> Iterator[str]:
    """All of a line, on as many as it takes; the others stand further in."""
    from rich.cells import cell_len, chop_cells

    line = one_line(text)
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    while cell_len(line) > columns > 2 * len(indent):
        part = chop_cells(line, columns)[0]
        blank = part.rstrip().rfind(" ")
        part = part[:blank] if blank > len(indent) else part
        yield part
        line = indent + line[len(part) :].lstrip(" ")
    yield cut(line, columns)
