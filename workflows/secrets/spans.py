"""Spans of secrets in a text, and decoded views of a text whose spans map back to the original."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Span = tuple[int, int]
Finder = Callable[[str], Iterable[Span]]
"""A function that finds the spans of secrets in a text."""


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Sort spans and merge overlapping ones."""
    apart: list[Span] = []
    for start, end in sorted(spans):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        elif end > start:
            apart.append((start, end))
    return apart


def replace_spans(text: str, spans: Iterable[Span], by: Callable[[str], str]) -> str:
    """Replace each span of the text; the spans must be merged."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += text[done:start], by(text[start:end])
        done = end
    return "".join((*parts, text[done:])) if parts else text


@dataclass(frozen=True)
class View:
    """A text with some parts decoded or removed, and where each piece comes from."""

    text: str
    starts: list[int]
    """The start of each piece in the view."""
    origins: list[Span]
    """The span of each piece in the original."""
    decoded: list[bool]
    """Whether each piece maps to its origin only as a whole."""

    def back(self, span: Span) -> Span:
        """Map a span of the view back to the original."""
        start, end = span
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        from_, to = self.origins[first][0], self.origins[last][1]
        if not self.decoded[first]:
            from_ += start - self.starts[first]
        if not self.decoded[last]:
            to = self.origins[last][0] + end - self.starts[last]
        return from_, to


def view(text: str, pattern: re.Pattern[str], decode: Callable[[re.Match[str]], str]) -> View | None:
    """Return a view with the pattern's matches decoded; None if that changes nothing."""
    parts: list[str] = []
    starts: list[int] = []
    origins: list[Span] = []
    decoded: list[bool] = []
    done = length = 0
    for piece, origin, whole in _pieces(text, pattern, decode):
        if piece:
            parts.append(piece)
            starts.append(length)
            origins.append(origin)
            decoded.append(whole)
            length += len(piece)
        done += whole
    return View("".join(parts), starts, origins, decoded) if done and parts else None


def _pieces(
    text: str, pattern: re.Pattern[str], decode: Callable[[re.Match[str]], str]
) -> Iterator[tuple[str, Span, bool]]:
    at = 0
    for match in pattern.finditer(text):
        if (meant := decode(match)) == match[0]:
            continue
        start, end = match.span()
        if start > at:
            yield text[at:start], (at, start), False
        yield meant, (start, end), True
        at = end
    if at < len(text):
        yield text[at:], (at, len(text)), False
