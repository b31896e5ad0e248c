"""Tables that fit the terminal they are shown on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cli.drawing.lines import Line, Piece
from cli.drawing.looks import Look
from cli.drawing.widths import CUT, cut, padded, width

GAP = "  "
_EMPTY = {"", "-"}


@dataclass(frozen=True)
class Column:
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
    look: Callable[[str], Look] = lambda _: Look.PLAIN
    """How a cell looks, by what stands in it."""


Rows = Sequence[Sequence[str]]


def columns_of(headings: Sequence[str | Column]) -> list[Column]:
    """A heading alone is a column that never yields."""
    return [each if isinstance(each, Column) else Column(each) for each in headings]


def plain(columns: Sequence[Column], rows: Rows) -> Iterator[str]:
    """Every column, each as wide as it is."""
    cut_rows = [[_shortened(cell, each.plain) for cell, each in zip(row, columns, strict=True)] for row in rows]
    table = [[each.heading for each in columns], *cut_rows]
    widths = [max(map(width, cells)) for cells in zip(*table, strict=True)]
    for row in table:
        yield GAP.join(map(padded, row, widths)).rstrip()


def fitted(columns: Sequence[Column], rows: Rows, room: int | None) -> Iterator[Line]:
    """The same within so many columns of a terminal, and with its looks."""
    natural = [max(map(width, cells)) for cells in zip([each.heading for each in columns], *rows, strict=True)]
    kept = list(range(len(columns)))
    empty = {at for at in kept if columns[at].leaves and all(row[at] in _EMPTY for row in rows)}
    while room is not None and _least(columns, natural, kept) > room:
        leaving = [at for at in kept if columns[at].leaves]
        if not leaving:
            break
        kept.remove(max(leaving, key=lambda at: (at in empty, columns[at].leaves)))
    widths = _shrunk(columns, natural, kept, room)
    yield _line([Piece(padded(cut(columns[at].heading, widths[at]), widths[at]), Look.STRONG) for at in kept])
    for row in rows:
        cells = [(row[at], cut(row[at], widths[at]), at) for at in kept]
        yield _line([Piece(padded(shown, widths[at]), columns[at].look(cell)) for cell, shown, at in cells])


def _least(columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int]) -> int:
    """What these columns take when each has shrunk as far as it may."""
    return sum(_floor(columns[at], natural[at]) for at in kept) + len(GAP) * (len(kept) - 1)


def _floor(column: Column, natural: int) -> int:
    return natural if column.least is None else min(natural, column.least)


def _shrunk(columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int], room: int | None) -> dict[int, int]:
    """The width of each: the widest of those that may shrink gives first."""
    widths = {at: natural[at] for at in kept}
    if room is None:
        return widths
    over = sum(widths.values()) + len(GAP) * (len(kept) - 1) - room
    while over > 0:
        able = [at for at in kept if widths[at] > _floor(columns[at], natural[at])]
        if not able:
            break
        widths[max(able, key=lambda at: widths[at])] -= 1
        over -= 1
    return widths


def _shortened(cell: str, most: int | None) -> str:
    return cell if most is None or len(cell) <= most else cell[: most - 1] + CUT


def _line(cells: Sequence[Piece]) -> Line:
    *first, last = cells
    gapped = [piece for cell in first for piece in (cell, Piece(GAP))]
    return Line(*gapped, last._replace(text=last.text.rstrip()))
