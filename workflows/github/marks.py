"""The hidden mark every comment of ours ends with: it says which fact the comment tells (ruling L3)."""

import re

_OURS = re.compile(r"<!-- service:([A-Za-z0-9][A-Za-z0-9._-]{0,199}) -->")
_ANY = re.compile(r"<!--\s*service:", re.IGNORECASE)


def marker(fact_id: str) -> str:
    """The mark of a fact, as the last line of its comment."""
    mark = f"<!-- service:{fact_id} -->"
    if not _OURS.fullmatch(mark):
        raise ValueError(f"{fact_id!r} is no id of a fact")
    return mark


def marked(body: str) -> str | None:
    """The fact a comment tells; None when its last line is no mark exactly as we write it.

    That the comment is ours is for the caller to see: anybody can type a mark.
    """
    last = body.rstrip("\r\n").rpartition("\n")[2]
    found = _OURS.fullmatch(last)
    return found[1] if found else None


def holds_mark(body: str) -> bool:
    """Something like a mark stands anywhere in it."""
    return _ANY.search(body) is not None
