"""What a person wrote, read as answers to the questions of a round (ruling F5)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workflows.contract.strings import storable

_HEAD = re.compile(r"\s*(?P<quote>[\"']?)(?P<id>[A-Za-z0-9][A-Za-z0-9._-]*)\s*:(?P<text>.*)", re.DOTALL)
_ARGUMENTS = re.compile(r"\s*\"[^\"]*\"(?:\s+\"[^\"]*\")+\s*")
_QUOTES = {'"': '"', "'": "'", "\N{LEFT DOUBLE QUOTATION MARK}": "\N{RIGHT DOUBLE QUOTATION MARK}"}
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
MOST_UNMATCHED = 20


@dataclass
class Answers:
    """The answers by question id; everything else is guidance. Nothing a person wrote is dropped."""

    by_id: dict[str, str] = field(default_factory=dict)
    guidance: str = ""
    unmatched: tuple[str, ...] = ()
    """What stands in an id's place and is none of the round's ids."""


def parse(body: str, ids: Sequence[str]) -> Answers:
    """One `<id>: text` per line; text runs on until the next known id; a single question takes a bare body."""
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
    """What stands where an id of this round should: first in a line that no blank begins.

    A bare body is one answer: of it only the beginning counts.
    """
    lines = list(_lines(clean(body)))
    return _unmatched([line for line in lines[: 1 if is_bare(body, ids) else None] if not line[:1].isspace()], ids)


def is_bare(body: str, ids: Sequence[str]) -> bool:
    """The body names no id and answers the only question there is."""
    lines = _lines(clean(body))
    return len(ids) == 1 and not any(head["id"] in ids for line in lines if (head := _HEAD.fullmatch(line)))


def with_ids(body: str, names: Mapping[str, str]) -> str:
    """The same with other ids in the places of these."""
    lines = [(line, _HEAD.fullmatch(line)) for line in _lines(clean(body))]
    return "\n".join(
        f"{head['quote']}{names[head['id']]}:{head['text']}" if head and head["id"] in names else line
        for line, head in lines
    )


def clean(text: str) -> str:
    """With one kind of line end, and without what cannot be stored."""
    return storable(_LINE_END.sub("\n", text))


def one_line(text: str, limit: int = 80) -> str:
    """A name or a word as it may stand in a sentence of ours."""
    return " ".join(clean(text).split())[:limit]


def unquoted(text: str) -> str:
    """Without the quotes around the whole value, if they are one pair."""
    text = text.strip()
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return text
    inside = text[1:-1]
    return text if closing in inside or text[0] in inside else inside.strip()


def _lines(body: str) -> Iterator[str]:
    """A body quoted as a whole is unquoted, and `"a: x" "b: y"` on one line is two lines."""
    for line in unquoted(body).split("\n"):
        yield from re.findall(r"\"[^\"]*\"", line) if _ARGUMENTS.fullmatch(line) else (line,)


def _sections(lines: Sequence[str], ids: frozenset[str]) -> Iterator[tuple[str | None, str]]:
    """Each known id with its text; what comes before the first has none."""
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
    """A quote that was opened before the id is closed after the text."""
    text = "\n".join(texts).strip()
    return text[:-1].strip() if quote and text.endswith(quote) else unquoted(text)


def _unmatched(lines: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Only in a colon and a blank does a word look like an id: `https://...` and `12:30` do not."""
    heads = (_HEAD.fullmatch(line) for line in lines)
    names = (head["id"] for head in heads if head and (not head["text"] or head["text"][0].isspace()))
    return tuple(dict.fromkeys(name for name in names if name not in ids))[:MOST_UNMATCHED]
