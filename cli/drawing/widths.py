"""Display width of text in terminal columns: Chinese letters and emoji take two, combining marks none."""

import re
from collections.abc import Iterator
from functools import cache

CUT = "…"
_PERHAPS_WIDE = "[\u0300-\u1fff\u200b-\u200f\u20d0-\u20ff\u2300-\u23ff\u25fd-\u27bf\u2b00-\U0010ffff]"
"""Characters whose width only rich knows; all others take one column. Rich is imported only for texts that have
some.
"""


@cache
def _perhaps_wide() -> re.Pattern[str]:
    """Compile the pattern on first use: every command imports this module."""
    return re.compile(_PERHAPS_WIDE)


def width(text: str) -> int:
    """Return the columns a text takes on a terminal."""
    if text.isascii() or not _perhaps_wide().search(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fitting(text: str, columns: int) -> int:
    """Return how many characters of a text fit into these columns; a letter is never separated from its marks."""
    if text.isascii() or not _perhaps_wide().search(text):
        return min(len(text), max(columns, 0))
    from rich.cells import split_graphemes

    taken = end = 0
    for _, stop, cells in split_graphemes(text)[0]:
        if taken + cells > columns:
            break
        taken, end = taken + cells, stop
    return end


def cut(text: str, columns: int) -> str:
    """Cut a text to the width, with an ellipsis if anything is left out."""
    return text if width(text) <= columns else text[: fitting(text, columns - 1)].rstrip() + CUT


def pad(text: str, columns: int) -> str:
    """Pad a text with blanks to the width."""
    return text + " " * (columns - width(text))


def _word(text: str, begin: int) -> str:
    return text[begin:].lstrip(" ").partition(" ")[0]


def folds(text: str, columns: int, further: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line: the first `columns` wide, the others narrower by `further`.

    Fold at blanks, which are dropped there; split a word that is longer than a line.
    """
    begin, room = 0, columns
    while True:
        end = begin + fitting(text[begin:], room)
        if end >= len(text):
            yield begin, len(text)
            return
        blank = text.rfind(" ", begin, end + 1)
        if blank > begin and text[begin:blank].strip() and width(_word(text, blank + 1)) <= columns - further:
            end = blank
        end = max(end, begin + 1)
        yield begin, end
        begin = end + len(text[end:]) - len(text[end:].lstrip(" "))
        if begin >= len(text):
            return
        room = max(columns - further, 1)
