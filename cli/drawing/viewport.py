"""Choice of the lines of a view that fit on a screen: the most important ones, with counts of the others."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.drawing.lines import Line, Look, Piece

_STEM = re.compile("[ │├└─]*")
_BELOW = str.maketrans("├└─", "│  ")


@dataclass(frozen=True)
class Row:
    """A line of a view."""

    text: str
    rank: tuple[float, ...] = ()
    """The priority; the lowest are shown first."""
    word: str = ""
    """The word it is counted as while hidden."""
    above: int | None = None
    """The index of its parent row, which is shown with it if there is room."""


def fitted(rows: Sequence[Row], height: int) -> list[Row]:
    """Return the rows that fit, in order, with a line for each gap."""
    if len(rows) <= height:
        return list(rows)
    shown = _Shown(len(rows), height)
    for place in sorted(range(len(rows)), key=lambda each: (rows[each].rank, each)):
        _ = shown.add(_with_those_above(rows, place)) or shown.add([place])
    return list(_told(rows, shown.places))[:height]


class _Shown:
    """The visible rows, and the lines they take together with one for each gap."""

    def __init__(self, count: int, height: int) -> None:
        self.places: set[int] = set()
        self._count = count
        self._room = height - 1

    def add(self, wanted: Iterable[int]) -> bool:
        """Show all of these rows, if they fit together; return whether they do."""
        new = [each for each in dict.fromkeys(wanted) if each not in self.places]
        needed = 0
        for each in new:
            needed += self._hidden(each - 1) + self._hidden(each + 1)
            self.places.add(each)
        if needed > self._room:
            self.places.difference_update(new)
            return False
        self._room -= needed
        return True

    def _hidden(self, place: int) -> bool:
        """Return whether the row at this place exists and is hidden, so that it needs a line for its gap."""
        return 0 <= place < self._count and place not in self.places


def _with_those_above(rows: Sequence[Row], place: int) -> list[int]:
    found = [place]
    while (above := rows[found[-1]].above) is not None:
        found.append(above)
    return found


def _told(rows: Sequence[Row], shown: set[int]) -> Iterable[Row]:
    hidden: list[Row] = []
    for place, row in enumerate(rows):
        if place not in shown:
            hidden.append(row)
            continue
        if hidden:
            yield _gap(hidden)
        hidden = []
        yield row
    if hidden:
        yield _gap(hidden)


def _gap(hidden: Sequence[Row]) -> Row:
    found = _STEM.match(hidden[0].text)
    stem = found[0].translate(_BELOW) if found else ""
    words = Counter(row.word for row in hidden if row.word)
    said = ", ".join(f"{count} {word}" for word, count in words.items())
    return Row(Line(stem, Piece(f"… {len(hidden)} more{f': {said}' if said else ''}", Look.QUIET)))
