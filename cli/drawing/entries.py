"""Transcript entries as lines: each begins with a label, and the agent's text is prefixed."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import FOLDED, Piece, ScreenLine, Tone
from workflows.text.invisible import PREFIX, one_line, prefix_lines
from workflows.text.plurals import quantity

if TYPE_CHECKING:
    from activities.agents.entries import Entry

RESULT_LINES = 10
"""Most lines shown of a tool call's result; the raw output and `--json` have all."""

_LOOKS = {
    "said": Tone.STRONG,
    "tool": Tone.GOES,
    "files": Tone.GOOD,
    "usage": Tone.QUIET,
    "note": Tone.QUIET,
}
_WORDS = {"files": "changed", "usage": "tokens"}


def lines_of(entry: "Entry") -> Iterator[str]:
    """Yield the lines of an entry, the first with its time of day if that is known."""
    first, *others = _lines_of(entry)
    if entry.written_at is not None:
        at = Piece(f"{time.strftime('%H:%M:%S', time.localtime(entry.written_at))} ", Tone.QUIET)
        first = ScreenLine(at, *first.pieces, below=first.below)
    yield first
    yield from others


def _lines_of(entry: "Entry") -> Iterator[ScreenLine]:
    word = "failed" if entry.failed and entry.kind in ("result", "note") else _WORDS.get(entry.kind, entry.kind.value)
    head = Piece(f"{word}:", Tone.BAD if entry.failed else _LOOKS.get(entry.kind, Tone.PLAIN))
    match entry.kind:
        case "tool":
            yield _line(head, f" {entry.tool} {entry.argument}".rstrip())
        case "files":
            yield _line(head, f" {', '.join(entry.files)}")
        case "usage" if entry.usage:
            of = f" ({entry.text})" if entry.text else ""
            yield _line(head, f" {entry.usage.input_tokens} in, {entry.usage.output_tokens} out{of}")
        case "printed":
            yield from map(_quote, prefix_lines(entry.text))
        case "result":
            shown = prefix_lines(entry.text)
            more = len(shown) - RESULT_LINES
            yield from _with_head(head, shown if more <= 1 else shown[:RESULT_LINES])
            if more > 1:
                yield ScreenLine(Piece(f"    {quantity(more, 'more line')}", Tone.QUIET))
        case _:
            yield from _with_head(head, prefix_lines(entry.text))


def _with_head(head: Piece, text: list[str]) -> Iterator[ScreenLine]:
    """Yield a text behind its label, or below the label if it has several lines."""
    if len(text) == 1:
        yield _line(head, f" {text[0].removeprefix(PREFIX)}".rstrip())
    else:
        yield ScreenLine(head)
        yield from map(_quote, text)


def _line(head: Piece, text: str) -> ScreenLine:
    return ScreenLine(head, one_line(text), below="  " + FOLDED)


def _quote(line: str) -> ScreenLine:
    return ScreenLine(line, below=PREFIX)
