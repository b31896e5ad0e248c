"""A parser of a person's text as answers to the questions of a round (ruling F5)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workflows.contract.size_limits import storable

_HEAD = re.compile(r"\s*(?P<quote>[\"']?)(?P<id>[A-Za-z0-9][A-Za-z0-9._-]*)\s*:(?P<text>.*)", re.DOTALL)
_ARGUMENTS = re.compile(r"\s*\"[^\"]*\"(?:\s+\"[^\"]*\")+\s*")
_QUOTES = {'"': '"', "'": "'", "\N{LEFT DOUBLE QUOTATION MARK}": "\N{RIGHT DOUBLE QUOTATION MARK}"}
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
MOST_UNMATCHED = 20


@dataclass
class Answers:
    """Answers by question id; all other text is guidance. No text is dropped."""

    by_id: dict[str, str] = field(default_factory=dict)
    guidance: str = ""
    unmatched: tuple[str, ...] = ()
    """Words in the place of an id that are not ids of the round."""


def parse(body: str, ids: Sequence[str]) -> Answers:
    """Parse one `<id>: text` per line; text ends at the next known id; a single question accepts a bare body."""
    lines = list(_lines(clean(body)))
    sections = list(_sections(lines, frozenset(ids)))
    if len(ids) == 1 and all(known is None for known, _ in sections):
        text = unquoted("\n".join(lines))
        return Answers({ids[0]: text} if text else {})
    found: dict[str, list[str]] = {}
    for known, text in sections:
        if text:
            found.setdefault(known or "", []).append(text)
    guidance = "\n".join(found.pop("", []))
    return Answers({each: "\n".join(texts) for each, texts in found.items()}, guidance, _unmatched(lines, ids))


def strange_ids(body: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return unknown words in the place of an id: first in a line that does not begin with a blank.

    A bare body is one answer: only its first line counts.
    """
    lines = list(_lines(clean(body)))
    return _unmatched([line for line in lines[: 1 if is_bare(body, ids) else None] if not line[:1].isspace()], ids)


def is_bare(body: str, ids: Sequence[str]) -> bool:
    """Return whether the body names no id and answers the only question."""
    lines = _lines(clean(body))
    return len(ids) == 1 and not any(head["id"] in ids for line in lines if (head := _HEAD.fullmatch(line)))


def with_ids(body: str, names: Mapping[str, str]) -> str:
    """Replace ids at the beginning of lines."""
    lines = [(line, _HEAD.fullmatch(line)) for line in _lines(clean(body))]
    return "\n".join(
        f"{head['quote']}{names[head['id']]}:{head['text']}" if head and head["id"] in names else line
        for line, head in lines
    )


def clean(text: str) -> str:
    """Normalise line ends, and replace characters that cannot be stored."""
    return storable(_LINE_END.sub("\n", text))


def one_line(text: str, limit: int = 80) -> str:
    """Return a text as one short line, to insert into a sentence."""
    return " ".join(clean(text).split())[:limit]


def unquoted(text: str) -> str:
    """Remove the quotes around the whole value, if they are one pair."""
    text = text.strip()
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return text
    inside = text[1:-1]
    return text if closing in inside or text[0] in inside else inside.strip()


def _lines(body: str) -> Iterator[str]:
    """Split a body into lines: unquote a quoted one, and split `"a: x" "b: y"` on one line into two."""
    for line in unquoted(body).split("\n"):
        yield from re.findall(r"\"[^\"]*\"", line) if _ARGUMENTS.fullmatch(line) else (line,)


def _sections(lines: Sequence[str], ids: frozenset[str]) -> Iterator[tuple[str | None, str]]:
    """Yield each known id with its text, after the text before the first, whose id is None."""
    known, quote, texts = None, "", []
    for line in lines:
        head = _HEAD.fullmatch(line)
        if head is None or head["id"] not in ids:
            texts.append(line)
            continue
        yield known, _value(quote, texts)
        known, quote, texts = head["id"], head["quote"], [head["text"]]
    yield known, _value(quote, texts)


def _value(quote: str, texts: Sequence[str]) -> str:
    """Strip the closing quote of a text whose id is inside the quotes."""
    text = "\n".join(texts).strip()
    return text[:-1].strip() if quote and text.endswith(quote) else unquoted(text)


def _unmatched(lines: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Return unknown ids. A word counts only before a colon and a blank: `https://...` and `12:30` do not."""
    heads = (_HEAD.fullmatch(line) for line in lines)
    names = (head["id"] for head in heads if head and (not head["text"] or head["text"][0].isspace()))
    return tuple(dict.fromkeys(name for name in names if name not in ids))[:MOST_UNMATCHED]
