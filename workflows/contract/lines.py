"""Lines of markdown that belong together: list items, texts cut to what fits."""

import re
from collections.abc import Iterable

CUT_HERE = "(cut here: the rest does not fit)"
_BLANK_LINES = re.compile("\n{3,}")

Lines = list[str]


def wrapped(text: str) -> Lines:
    """Its lines. White space at the start would move the list item's edge, and what follows out of it."""
    lines = "\n".join(line.rstrip() for line in text.split("\n")).strip(" \t\n")
    return _BLANK_LINES.sub("\n\n", lines).split("\n")


def word(text: str) -> str:
    """All of it on one line."""
    return " ".join(text.split())


def bullet(lines: Lines) -> Lines:
    """A list item. Its text begins right behind the dash: blanks would move what belongs to it out of it, and a lone
    dash would underline the line above."""
    return [f"- {lines[0].lstrip() or '(empty)'}", *(f"  {line}".rstrip() for line in lines[1:])]


def cut(text: str, cap: int) -> str:
    """At most so many characters, and how many are missing."""
    if len(text) <= cap:
        return text
    return f"{text[: cap - 30]}... ({len(text) - cap + 30} characters cut)"


def fit(lines: Iterable[str], cap: int, note: str = CUT_HERE) -> str:
    """As many whole lines as there is room for; what comes after is never even made."""
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
