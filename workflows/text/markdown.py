"""Blocks of markdown lines: list items, and texts cut to fit."""

import re
from collections.abc import Iterable

from workflows.text.invisible import one_line

CUT_HERE = "(cut here: the rest does not fit)"
SUMMARY_LIMIT = 200
"""Characters in the summary of a workflow, an activity or a timer in Temporal's web UI."""
_BLANK_LINES = re.compile("\n{3,}")

Lines = list[str]


def block_lines(text: str) -> Lines:
    """Split a text into lines, without leading white space, which would shift the indent of its list item."""
    lines = "\n".join(line.rstrip() for line in text.split("\n")).strip(" \t\n")
    return _BLANK_LINES.sub("\n\n", lines).split("\n")


def word(text: str) -> str:
    """Join the text to one line."""
    return " ".join(text.split())


def bullet(lines: Lines) -> Lines:
    """Return a list item, with text right after the dash: more blanks would break its continuation lines, and a dash
    alone would turn the line above into a heading.
    """
    return [f"- {lines[0].lstrip() or '(empty)'}", *(f"  {line}".rstrip() for line in lines[1:])]


def cut(text: str, limit: int, note: str = "…") -> str:
    """Return a text of at most `limit` characters unchanged; of a longer text, return the first `limit` characters and
    the note.
    """
    return text if len(text) <= limit else text[:limit] + note


def excerpt(text: str, limit: int, whole: str) -> str:
    """Cut a text to `limit` characters, with a note on where the whole text is."""
    note = f"\n[cut: {limit:,} of {len(text):,} characters shown; the whole text is in {whole}]"
    return cut(text, limit, note)


def summary_line(*parts: str) -> str:
    """Join the non-empty parts into one line for Temporal's web UI: `sub / design · dev implement · title`."""
    line = " · ".join(one_line(word(part)) for part in parts if part)
    return line if len(line) <= SUMMARY_LIMIT else line[: SUMMARY_LIMIT - 1] + "…"


def fit(lines: Iterable[str], cap: int, note: str = CUT_HERE) -> str:
    """Return as many whole lines as fit. Later lines are not even generated."""
    kept: Lines = []
    room = cap + 1
    for line in lines:
        room -= len(line) + 1
        kept.append(line)
        if room < 0:
            break
    text = "\n".join(kept)
    if len(text) <= cap:
        return text
    head = text[: max(0, cap - len(note) - 2)].rpartition("\n")[0]
    return f"{head}\n\n{note}" if head else text[:cap]
