"""Tables that fit the terminal they are shown on."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from cli.drawing.lines import Piece, ScreenLine, Tone
from cli.drawing.widths import cut, width

GAP = "  "
_EMPTY = {"", "-"}
_NARROWEST = 4
"""Least width of a text column, once no more columns can be left out."""


class Column(NamedTuple):
    """A column's heading, and how it shrinks if the table is too wide.

    By default a column is as wide as its widest cell.
    """

    heading: str
    least: int | None = None
    """Least width it may shrink to; longer cells are cut."""
    leaves: int = 0
    """If greater than 0, the column may be left out: empty columns first, then those with the highest number."""
    plain: int | None = None
    """Maximal cell width without a terminal."""
    right: bool = False
    """Right-aligned numbers; only on a terminal."""
    link: Callable[[str], str] = lambda _: ""
    """Returns the link of a cell, by its text."""
    tone: Callable[[str], Tone] = lambda _: Tone.PLAIN
    """Returns the tone of a cell, by its text."""


Rows = Sequence[Sequence[str]]


def columns_of(headings: Sequence[str | Column]) -> list[Column]:
    """Convert plain headings to columns of fixed width."""
    return [each if isinstance(each, Column) else Column(each) for each in headings]


def without_room(columns: Sequence[Column], rows: Rows, room: int | None) -> set[int]:
    """Return the columns to leave out at this width. Empty ones go before any text is cut."""
    if room is None:
        return set()
    natural = _natural(columns, rows)
    floors = [_floor(*each) for each in zip(columns, natural, strict=True)]
    leaving = sorted((at for at, each in enumerate(columns) if each.leaves), key=lambda at: -columns[at].leaves)
    empty = [at for at in leaving if all(row[at] in _EMPTY for row in rows)]
    out: set[int] = set()
    for sizes, order in ((natural, empty), (floors, leaving)):
        for at in order:
            if _whole([size for other, size in enumerate(sizes) if other not in out]) > room:
                out.add(at)
    return out


def plain(columns: Sequence[Column], rows: Rows) -> Iterator[str]:
    """Yield the lines of all columns in full width, with only texts cut, for a pipe or a file."""
    cells = [
        [cut(cell, each.plain) if each.plain else cell for cell, each in zip(row, columns, strict=True)] for row in rows
    ]
    return fit([each._replace(right=False) for each in columns], cells, None)


def fit(columns: Sequence[Column], rows: Rows, room: int | None) -> Iterator[ScreenLine]:
    """Yield the lines of the columns that fit the width, with their looks."""
    out = without_room(columns, rows, room)
    natural = _natural(columns, rows)
    widths = {at: width for at, width in enumerate(natural) if at not in out}
    if room is not None:
        for least in (None, _NARROWEST):
            _shrink(widths, {at: _floor(columns[at], natural[at], least) for at in widths}, room)
    heads = [Column(each.heading, right=each.right, tone=lambda _: Tone.STRONG) for each in columns]
    for some, row in [(heads, [each.heading for each in columns]), *((columns, row) for row in rows)]:
        yield _line([_cell(some[at], row[at], size) for at, size in widths.items()])


def _natural(columns: Sequence[Column], rows: Rows) -> list[int]:
    """Return the width of each column without a limit."""
    return [max(map(width, cells)) for cells in zip([each.heading for each in columns], *rows, strict=True)]


def _whole(sizes: Collection[int]) -> int:
    return sum(sizes) + len(GAP) * (len(sizes) - 1)


def _floor(column: Column, natural: int, least: int | None = None) -> int:
    return natural if column.least is None else min(natural, least or column.least)


def _shrink(widths: dict[int, int], floors: dict[int, int], room: int) -> None:
    """Narrow the widest shrinkable columns until the table fits."""
    for _ in range(_whole(widths.values()) - room):
        able = [at for at in widths if widths[at] > floors[at]]
        if able:
            widths[max(able, key=lambda at: widths[at])] -= 1


def _cell(column: Column, text: str, size: int) -> list[Piece]:
    shown = cut(text, size)
    cell, rest = Piece(shown, column.tone(text), column.link(text)), Piece(" " * (size - width(shown)))
    return [rest, cell] if column.right else [cell, rest]


def _line(cells: Sequence[list[Piece]]) -> ScreenLine:
    pieces = [piece for cell in cells for piece in (*cell, Piece(GAP))]
    while pieces and not pieces[-1].text.strip():
        pieces.pop()
    return ScreenLine(*pieces)
