"""The hidden mark at the end of every comment of ours: it names the comment's fact (ruling L3)."""

import re

_OURS = re.compile(r"<!-- service:([A-Za-z0-9][A-Za-z0-9._-]{0,199}) -->")
_ANY = re.compile(r"<!--\s*service:", re.IGNORECASE)


def marker(fact_id: str) -> str:
    """Return the mark of a fact, the last line of its comment."""
    mark = f"<!-- service:{fact_id} -->"
    if not _OURS.fullmatch(mark):
        raise ValueError(f"{fact_id!r} is no id of a fact")
    return mark


def marked(body: str) -> str | None:
    """Return the fact of a comment, or None if its last line is not exactly a mark.

    The caller checks that the comment is ours: anybody can type a mark.
    """
    last = body.rstrip("\r\n").rpartition("\n")[2]
    found = _OURS.fullmatch(last)
    return found[1] if found else None


def holds_mark(body: str) -> bool:
    """Return whether a text contains anything like a mark."""
    return _ANY.search(body) is not None
