"""Finds tokens by their form: the table of `secret_tokens`, compiled when a text first holds such a prefix.

Linear on any text: a prefix is searched as plain text, what follows is read once, and no repeat stands in a repeat.
"""

import re
from collections.abc import Container, Iterator
from functools import cache

from workflows.contract.secret_spans import Span
from workflows.contract.secret_tokens import INNER, PREFIXED, SHAPED

_LONGEST = 120
"""Characters behind what stands inside a token."""

_RUN = re.compile(r"[^\s\"'<>]{14,}")
"""The shortest token."""

_WORD = re.compile(r"[A-Za-z0-9_]")


def tokens(text: str, begins: Container[int] = ()) -> Iterator[Span]:
    """Where tokens of a known form stand. One that begins in the middle of a word is none: `task-...` has no `sk-`;
    but what stands at one of `begins` is no middle."""
    if not _RUN.search(text):
        return
    for prefix, body in _prefixes():
        at = text.find(prefix)
        while at >= 0:
            after = at + len(prefix)
            within = at > 0 and at not in begins and _WORD.match(text, at - 1) is not None
            if not within and (found := _compiled(body).match(text, after)):
                yield at, found.end()
                after = found.end()
            at = text.find(prefix, after)
    for _, inside, before, whole in INNER:
        at = text.find(inside)
        while at >= 0:
            after = at + len(inside)
            if found := _compiled(rf"(?<![A-Za-z0-9_]){whole}").search(text, max(0, at - before), at + _LONGEST):
                yield found.span()
                after = max(after, found.end())
            at = text.find(inside, after)
    yield from _discord(text)


@cache
def _prefixes() -> tuple[tuple[str, str], ...]:
    known = [
        (prefix, f"[{rest}]{{{least},}}+=*+") for _, prefixes, rest, least in PREFIXED for prefix in prefixes.split()
    ]
    known += [(prefix, body) for _, prefixes, body in SHAPED for prefix in _split(prefixes)]
    return tuple(known)


def _split(prefixes: str) -> list[str]:
    """Most are words; the one that ends with a space is a header's."""
    return [prefixes] if prefixes.endswith(" ") else prefixes.split()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_DISCORD = re.compile(r"(?<![\w.-])[MNO][\w-]{23,28}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])", re.ASCII)


def _discord(text: str) -> Iterator[Span]:
    """Tokens of Discord's bots have no prefix, but three parts of known lengths."""
    if text.count(".") > 1:
        yield from (found.span() for found in _DISCORD.finditer(text))
