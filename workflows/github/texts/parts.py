"""The parts of texts: capped sections, defused foreign text, commands to copy, a result, the mark."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflows.contract.models import ServiceResult
from workflows.contract.render import render_comment, safe_excerpt
from workflows.github.facts import marker
from workflows.model.rows import JobRecord
from workflows.text.inert import inert
from workflows.text.markdown import Lines, block_lines, bullet, word

MOST_BYTES = 60_000
"""Limit of a comment with its mark: GitHub accepts 65 536 characters."""

LINE = 300
TEXT = 2_000
_FENCE = "```"
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?)")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that share one size limit; too long a part is cut between lines."""

    lines: Sequence[str]
    cap: int = 2_000
    """In bytes."""
    whole: str = ""
    """The sentence that says where the full text is."""


def line(text: str, limit: int = LINE) -> str:
    """Return text of agents or people on one line, escaped for use inside a line of the service."""
    return word(inert(safe_excerpt(text, limit)))


def cell(text: str, limit: int = 60) -> str:
    """Return text of agents or people for a table cell, escaped so that it can't break the columns."""
    return (
        line(text, limit).replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}").replace("\\", "\N{REVERSE SOLIDUS OPERATOR}")
    )


def code(text: str) -> str:
    """Format a name or command of the service as code."""
    clean = word(inert(safe_excerpt(text, TEXT))).replace("`", "'").replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}")
    return f"`{clean}`" if clean else "`-`"


def item(first: str, text: str, limit: int = TEXT) -> Lines:
    """Return a list item that begins with the service's words and contains escaped foreign text."""
    lines = block_lines(inert(safe_excerpt(text, limit)))
    return bullet([f"{first}{lines[0]}", *lines[1:]])


def quote(text: str, limit: int = TEXT) -> Lines:
    """Quote foreign text."""
    return [f"> {text}".rstrip() for text in block_lines(inert(safe_excerpt(text, limit)))]


def to_copy(lines: Iterable[str]) -> Lines:
    """Fence commands for copying, so that GitHub comments with them are not taken for commands."""
    return [f"{_FENCE}text", *(text.replace("`", "'") for text in lines), _FENCE]


def tag(handle: str, owner: str) -> str:
    """Return the mentions that notify people of a pause: each login of the handle, or else the owner."""
    words = handle.replace(",", " ").split()
    logins = [_LOGIN.fullmatch(word) for word in words]
    names = [login[1] for login in logins if login] if all(logins) else []
    mine = _LOGIN.fullmatch(owner)
    names = names or ([mine[1]] if mine else [])
    return " ".join(f"@{name}" for name in names)


def result_lines(result: ServiceResult | None, job: JobRecord | None, limit: int) -> Lines:
    """Render a result as `service result render` does; without a result, render the row of the job that should have
    one.
    """
    if result is not None:
        return render_comment(result, limit).split("\n")
    if job is None or not (job.decision or job.summary or job.reason):
        return []
    return [f"### Result: {job.decision.words if job.decision else job.state}", "", *quote(job.summary or job.reason)]


def comment(fact_id: str, parts: Iterable[Part]) -> str:
    """Assemble a comment's whole body from its parts; the last line is the fact's mark."""
    mark = marker(fact_id)
    room = MOST_BYTES - len(mark) - 4
    texts = []
    for part in parts:
        text = _fit(part, min(part.cap, room))
        if text:
            texts.append(text)
            room -= len(text.encode()) + 2
    return "\n\n".join([*texts, mark])


def _fit(part: Part, cap: int) -> str:
    """Return as many whole lines as fit the limit, then the sentence about the lines left out."""
    text = "\n".join(part.lines).strip("\n")
    if len(text.encode()) <= cap:
        return text
    kept: Lines = []
    left = cap - len(part.whole.encode()) - len(_FENCE) - 3
    for text in part.lines:
        left -= len(text.encode()) + 1
        if left < 0:
            break
        kept.append(text)
    if sum(text.startswith(_FENCE) for text in kept) % 2:
        kept.append(_FENCE)
    return "\n".join([*kept, "", part.whole]).strip("\n") if kept else ""
