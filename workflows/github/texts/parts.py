"""What comments are put together from: capped parts, text of others made harmless, commands to copy, the mark."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflows.contract.inert import inert
from workflows.contract.lines import Lines, bullet, cut, word, wrapped
from workflows.contract.redact import redact
from workflows.github.marks import marker

MOST_BYTES = 60_000
"""Of a comment, its mark included: GitHub takes 65 536 characters."""

LINE = 300
TEXT = 2_000
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?)")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that are cut together, between lines, where they take more than their share."""

    lines: Sequence[str]
    cap: int
    """In bytes."""
    whole: str
    """The sentence that says where all of it is."""


def line(text: str, limit: int = LINE) -> str:
    """What agents or people wrote, on one line of ours."""
    return word(inert(cut(redact(text), limit)))


def cell(text: str, limit: int = 60) -> str:
    """The same in a table, whose columns it cannot move."""
    return (
        line(text, limit).replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}").replace("\\", "\N{REVERSE SOLIDUS OPERATOR}")
    )


def code(text: str) -> str:
    """A name or a command of ours, as code."""
    clean = word(inert(redact(text))).replace("`", "'").replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}")
    return f"`{clean}`" if clean else "`-`"


def item(first: str, text: str, limit: int = TEXT) -> Lines:
    """A list item that begins with words of ours; the text of others stays inside it."""
    lines = wrapped(inert(cut(redact(text), limit)))
    return bullet([f"{first}{lines[0]}", *lines[1:]])


def quote(text: str, limit: int = TEXT) -> Lines:
    """Text of others as a quote."""
    return [f"> {each}".rstrip() for each in wrapped(inert(cut(redact(text), limit)))]


def to_copy(lines: Iterable[str]) -> Lines:
    """A command to copy: in a fence, so that it is none where it stands."""
    return ["```text", *(each.replace("`", "'") for each in lines), "```"]


def tag(handle: str, owner: str) -> str:
    """The mentions of a pause, the only ones that reach anybody: each name of the handle, else the owner."""
    words = handle.replace(",", " ").split()
    found = [_LOGIN.fullmatch(each) for each in words] if words else []
    names = [each[1] for each in found if each] if found and all(found) else []
    mine = _LOGIN.fullmatch(owner)
    names = names or ([mine[1]] if mine else [])
    return " ".join(f"@{name}" for name in names)


def comment(fact_id: str, parts: Iterable[Part]) -> str:
    """The whole body; its last line is the mark."""
    mark = marker(fact_id)
    room = MOST_BYTES - len(mark) - 4
    said = []
    for part in parts:
        text = _fitted(part, min(part.cap, room))
        if text:
            said.append(text)
            room -= len(text.encode()) + 2
    return "\n\n".join([*said, mark])


def _fitted(part: Part, cap: int) -> str:
    """As many whole lines as there is room for, then where the rest is."""
    text = "\n".join(part.lines).strip("\n")
    if len(text.encode()) <= cap:
        return text
    kept, left = [], cap - len(part.whole.encode()) - 2
    for each in part.lines:
        left -= len(each.encode()) + 1
        if left < 0:
            break
        kept.append(each)
    return "\n".join([*kept, "", part.whole]) if cap > len(part.whole.encode()) + 2 else ""
