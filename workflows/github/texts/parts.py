"""The parts of comments: capped sections, foreign text made inert, commands to copy, the mark."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflows.contract.render import shown
from workflows.github.facts import marker
from workflows.text.inert import inert
from workflows.text.markdown import Lines, bullet, word, wrapped

MOST_BYTES = 60_000
"""Limit of a comment with its mark: GitHub accepts 65 536 characters."""

LINE = 300
TEXT = 2_000
_FENCE = "```"
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?)")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that are cut together, between lines, if they exceed their share."""

    lines: Sequence[str]
    cap: int
    """In bytes."""
    whole: str
    """The sentence that says where the full text is."""


def line(text: str, limit: int = LINE) -> str:
    """Return text of agents or people on one line, safe inside a line that the service writes."""
    return word(inert(shown(text, limit)))


def cell(text: str, limit: int = 60) -> str:
    """Return text of agents or people for a table cell, escaped so that it can't break the columns."""
    return (
        line(text, limit).replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}").replace("\\", "\N{REVERSE SOLIDUS OPERATOR}")
    )


def code(text: str) -> str:
    """Format one of our names or commands as code."""
    clean = word(inert(shown(text, TEXT))).replace("`", "'").replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}")
    return f"`{clean}`" if clean else "`-`"


def item(first: str, text: str, limit: int = TEXT) -> Lines:
    """Return a list item that begins with the service's words and contains escaped foreign text."""
    lines = wrapped(inert(shown(text, limit)))
    return bullet([f"{first}{lines[0]}", *lines[1:]])


def quote(text: str, limit: int = TEXT) -> Lines:
    """Quote foreign text."""
    return [f"> {each}".rstrip() for each in wrapped(inert(shown(text, limit)))]


def to_copy(lines: Iterable[str]) -> Lines:
    """Fence commands for copying, so that GitHub comments with them are not taken for commands."""
    return [f"{_FENCE}text", *(each.replace("`", "'") for each in lines), _FENCE]


def tag(handle: str, owner: str) -> str:
    """Return the mentions for a pause, which notify people: each login of the handle, or else the owner."""
    words = handle.replace(",", " ").split()
    found = [_LOGIN.fullmatch(each) for each in words] if words else []
    names = [each[1] for each in found if each] if found and all(found) else []
    mine = _LOGIN.fullmatch(owner)
    names = names or ([mine[1]] if mine else [])
    return " ".join(f"@{name}" for name in names)


def comment(fact_id: str, parts: Iterable[Part]) -> str:
    """Assemble a comment's whole body from its parts; the last line is the fact's mark."""
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
    """Return as many whole lines as fit the limit, then the sentence about the rest."""
    text = "\n".join(part.lines).strip("\n")
    if len(text.encode()) <= cap:
        return text
    kept: Lines = []
    left = cap - len(part.whole.encode()) - len(_FENCE) - 3
    for each in part.lines:
        left -= len(each.encode()) + 1
        if left < 0:
            break
        kept.append(each)
    if sum(each.startswith(_FENCE) for each in kept) % 2:
        kept.append(_FENCE)
    return "\n".join([*kept, "", part.whole]).strip("\n") if kept else ""
