"""Where secrets stand in a text, and the same text read in another way: as spans that can be traced back."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Span = tuple[int, int]
Finder = Callable[[str], Iterable[Span]]
"""Where in a text it finds secrets."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, without overlaps."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > start:
            found.append((start, end))
    return found


def replaced(text: str, spans: Iterable[Span], by: Callable[[str], str]) -> str:
    """The text with each span replaced; the spans are merged ones."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += text[done:start], by(text[start:end])
        done = end
    return "".join((*parts, text[done:])) if parts else text


@dataclass(frozen=True)
class View:
    """A text in which some pieces are decoded or left out, and where each of its characters comes from."""

    text: str
    starts: list[int]
    """Where each piece begins in this text."""
    origins: list[Span]
    """Where it comes from."""
    decoded: list[bool]
    """Whether it stands for its origin as a whole."""

    def back(self, span: Span) -> Span:
        """Where in the original the span is."""
        start, end = span
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        from_, to = self.origins[first][0], self.origins[last][1]
        if not self.decoded[first]:
            from_ += start - self.starts[first]
        if not self.decoded[last]:
            to = self.origins[last][0] + end - self.starts[last]
        return from_, to


def view(text: str, pattern: re.Pattern[str], decode: Callable[[re.Match[str]], str]) -> View | None:
    """The text with what the pattern finds decoded; None when that changes nothing."""
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
    for found in pattern.finditer(text):
        if (meant := decode(found)) == found[0]:
            continue
        start, end = found.span()
        if start > at:
            yield text[at:start], (at, start), False
        yield meant, (start, end), True
        at = end
    if at < len(text):
        yield text[at:], (at, len(text)), False
