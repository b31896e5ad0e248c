"""Choosing the most important lines of a view that fit on a screen; the hidden ones are counted."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.drawing.lines import Piece, ScreenLine, Tone

_STEM = re.compile("[ │├└─]*")
_BELOW = str.maketrans("├└─", "│  ")


@dataclass(frozen=True)
class ViewRow:
    """A line of a view."""

    text: str
    rank: tuple[float, ...] = ()
    """The priority; the lowest are shown first."""
    word: str = ""
    """The word under which a hidden line is counted."""
    above: int | None = None
    """The index of its parent row, which is shown with it if there is room."""


def fit(rows: Sequence[ViewRow], height: int) -> list[ViewRow]:
    """Return the rows that fit, in order, with a line for each gap."""
    if len(rows) <= height:
        return list(rows)
    shown = _Window(len(rows), height)
    for place in sorted(range(len(rows)), key=lambda at: (rows[at].rank, at)):
        _ = shown.add(_with_those_above(rows, place)) or shown.add([place])
    return list(_with_gaps(rows, shown.places))[:height]


class _Window:
    """The visible rows, and the number of lines they take, including one for each gap."""

    def __init__(self, count: int, height: int) -> None:
        self.places: set[int] = set()
        self._count = count
        self._room = height - 1

    def add(self, wanted: Iterable[int]) -> bool:
        """Show all of these rows, if they fit together; return whether they do."""
        new = [place for place in dict.fromkeys(wanted) if place not in self.places]
        needed = 0
        for place in new:
            needed += self._is_hidden(place - 1) + self._is_hidden(place + 1)
            self.places.add(place)
        if needed > self._room:
            self.places.difference_update(new)
            return False
        self._room -= needed
        return True

    def _is_hidden(self, place: int) -> bool:
        """Return whether the row at this place exists and is hidden."""
        return 0 <= place < self._count and place not in self.places


def _with_those_above(rows: Sequence[ViewRow], place: int) -> list[int]:
    places = [place]
    while (above := rows[places[-1]].above) is not None:
        places.append(above)
    return places


def _with_gaps(rows: Sequence[ViewRow], shown: set[int]) -> Iterable[ViewRow]:
    hidden: list[ViewRow] = []
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


def _gap(hidden: Sequence[ViewRow]) -> ViewRow:
    match = _STEM.match(hidden[0].text)
    stem = match[0].translate(_BELOW) if match else ""
    words = Counter(row.word for row in hidden if row.word)
    counts = ", ".join(f"{count} {word}" for word, count in words.items())
    return ViewRow(ScreenLine(stem, Piece(f"… {len(hidden)} more{f': {counts}' if counts else ''}", Tone.QUIET)))
