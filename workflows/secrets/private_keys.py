"""A finder of private keys: whole, on one line, inside quotes, or with either end cut off."""

import re
from collections.abc import Iterator

from workflows.secrets.spans import Span

_KIND = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM = re.compile(
    f"-----BEGIN {_KIND}"
    # To its end; if that is cut off, as far as it looks like a key.
    rf"(?:(?:[^-]++|-(?!----))*+-----END {_KIND}"
    r"|(?:(?:\s|\\[nr])*+[A-Z][A-Za-z-]{2,20}: [^\n\\]{0,200})*+"
    r"(?:(?:\s|\\[nr]|[|>#\"'+,])*+[A-Za-z0-9+/]{20,}+={0,2})++(?:(?:\s|\\[nr]|[|>#\"'+,])*+[A-Za-z0-9+/]{4,19}={1,2})?)"
)
_PEM_END = re.compile(f"-----END {_KIND}")
_PEM_LINE = re.compile(r"[A-Za-z0-9+/=]{8,}")
_SSH2 = re.compile(
    r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[^-]++|-(?!---))*+(?:---- END SSH2 ENCRYPTED PRIVATE KEY ----)?"
)
_PUTTY = re.compile(r"Private-Lines: [0-9]{1,3}\r?\n(?:[A-Za-z0-9+/=]{16,80}\r?\n?)+(?:Private-MAC: [0-9a-f]{20,64})?")


def keys(text: str) -> Iterator[Span]:
    if "-----BEGIN " in text:
        yield from (match.span() for match in _PEM.finditer(text))
    if "-----END " in text:
        yield from (span for match in _PEM_END.finditer(text) if (span := _tail(text, match.start(), match.end())))
    if "---- BEGIN SSH2" in text:
        yield from (match.span() for match in _SSH2.finditer(text))
    if "Private-Lines" in text:
        yield from (match.span() for match in _PUTTY.finditer(text))


def _tail(text: str, end: int, after: int) -> Span | None:
    """Return the last lines of a key whose beginning is cut off."""
    start = end
    while start > 0:
        line = text.rfind("\n", max(0, start - 200), start - 1) + 1
        if not _PEM_LINE.fullmatch(text[line:start].strip()) or line >= start:
            break
        start = line
    return (start, after) if start < end else None
