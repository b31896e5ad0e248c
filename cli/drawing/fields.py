"""Names and values, one per line."""

from collections.abc import Iterable, Iterator

from cli.drawing.lines import FOLDED, Line, Piece, prose
from cli.drawing.looks import Look
from cli.drawing.widths import padded, width
from workflows.contract.visible import one_line, prefixed


def in_fields(fields: Iterable[tuple[str, object]]) -> Iterator[str]:
    """The lines of that: a value that has several stands below its name.

    One that is a `Line` has looks of its own, and stays as long as it is unless it says that it may be folded.
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
    """A text of others behind a word of ours, or below it where it has several lines."""
    text = text.rstrip("\n")
    return [head, *prefixed(text)] if "\n" in text else [prose(f"{head} {text}")]
