"""Tables that fit the terminal they are shown on."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from cli.drawing.lines import Line, Piece
from cli.drawing.looks import Look
from cli.drawing.widths import CUT, cut, padded, width

GAP = "  "
_EMPTY = {"", "-"}
_NARROWEST = 4
"""Of a text, where no column is left that could be left out."""


def plainly(_: str) -> Look:
    """As text."""
    return Look.PLAIN


def strongly(_: str) -> Look:
    """As a heading."""
    return Look.STRONG


def unlinked(_: str) -> str:
    """Nowhere."""
    return ""


class Column(NamedTuple):
    """A heading, and how its column yields where the table is too wide.

    A column is as wide as its widest cell, whatever room there is, unless it says otherwise.
    """

    heading: str
    least: int | None = None
    """It may shrink to this width; what is longer is cut."""
    leaves: int = 0
    """It may be left out; those with the highest number go first, and before them those in which nothing stands."""
    plain: int | None = None
    """Where there is no terminal, longer cells are cut to this."""
    right: bool = False
    """Numbers, one below the other; only on a terminal."""
    link: Callable[[str], str] = unlinked
    """Where a click on a cell leads, by what stands in it."""
    look: Callable[[str], Look] = plainly
    """How a cell looks, by what stands in it."""


Rows = Sequence[Sequence[str]]


def columns_of(headings: Sequence[str | Column]) -> list[Column]:
    """A heading alone is a column that never yields."""
    return [each if isinstance(each, Column) else Column(each) for each in headings]


def without_room(columns: Sequence[Column], rows: Rows, room: int | None) -> set[int]:
    """Which columns are left out on a terminal so wide: those in which nothing stands before a text is cut for them."""
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
    """Every column, each as wide as it is."""
    cut_rows = [[_shortened(cell, each.plain) for cell, each in zip(row, columns, strict=True)] for row in rows]
    widths = _natural(columns, cut_rows)
    for row in [[each.heading for each in columns], *cut_rows]:
        yield GAP.join(map(padded, row, widths)).rstrip()


def fitted(columns: Sequence[Column], rows: Rows, room: int | None) -> Iterator[Line]:
    """Those for which there is room on a terminal so wide, and with their looks."""
    out = without_room(columns, rows, room)
    natural = _natural(columns, rows)
    widths = {at: width for at, width in enumerate(natural) if at not in out}
    if room is not None:
        for least in (None, _NARROWEST):
            _shrink(widths, {at: _floor(columns[at], natural[at], least) for at in widths}, room)
    heads = [Column(each.heading, right=each.right, look=strongly) for each in columns]
    for some, row in [(heads, [each.heading for each in columns]), *((columns, row) for row in rows)]:
        yield _line([_cell(some[at], row[at], size) for at, size in widths.items()])


def _natural(columns: Sequence[Column], rows: Rows) -> list[int]:
    """How wide each is by itself."""
    return [max(map(width, cells)) for cells in zip([each.heading for each in columns], *rows, strict=True)]


def _whole(sizes: Collection[int]) -> int:
    return sum(sizes) + len(GAP) * (len(sizes) - 1)


def _floor(column: Column, natural: int, least: int | None = None) -> int:
    return natural if column.least is None else min(natural, least or column.least)


def _shrink(widths: dict[int, int], floors: dict[int, int], room: int) -> None:
    """Until it fits, the widest of those that may shrink gives first."""
    for _ in range(_whole(widths.values()) - room):
        able = [at for at in widths if widths[at] > floors[at]]
        if able:
            widths[max(able, key=lambda at: widths[at])] -= 1


def _cell(column: Column, text: str, size: int) -> list[Piece]:
    shown = cut(text, size)
    cell, rest = Piece(shown, column.look(text), column.link(text)), Piece(" " * (size - width(shown)))
    return [rest, cell] if column.right else [cell, rest]


def _shortened(cell: str, most: int | None) -> str:
    return cell if most is None or len(cell) <= most else cell[: most - 1] + CUT


def _line(cells: Sequence[list[Piece]]) -> Line:
    pieces = [piece for cell in cells for piece in (*cell, Piece(GAP))]
    while pieces and not pieces[-1].text.strip():
        pieces.pop()
    return Line(*pieces)
