"""Names and values, one per line."""

from collections.abc import Iterable, Iterator

from cli.drawing.lines import FOLDED, Line, Piece, prose
from cli.drawing.looks import Look
from cli.drawing.widths import padded, width
from workflows.text.invisible import one_line, prefixed


def in_fields(fields: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield the lines of the fields; a value of several lines is below its name.

    A `Line` keeps its own looks, and is folded only if it says so.
    """
    shown = [(name, value if isinstance(value, Line) else str(value)) for name, value in fields if _is_said(value)]
    columns = max((width(one_line(name)) for name, _ in shown), default=0)
    for name, value in shown:
        if "\n" in value.rstrip("\n"):
            yield from (Line(Piece(one_line(name), Look.STRONG)), *prefixed(value))
        else:
            looked = value if isinstance(value, Line) else Line(value.rstrip(), below=FOLDED)
            head = Piece(padded(one_line(name), columns), Look.STRONG)
            below = None if looked.below is None else " " * columns + FOLDED
            yield Line(head, "  ", *looked.pieces, below=below)


def _is_said(value: object) -> bool:
    return value not in (None, "", (), [])


def headed(head: str, text: str) -> list[str]:
    """Return foreign text behind a head of ours, or below it if it has several lines."""
    text = text.rstrip("\n")
    return [head, *prefixed(text)] if "\n" in text else [prose(f"{head} {text}")]
