"""A finder of tokens by form, after the table in `token_formats`. Patterns are compiled when a text first contains
their prefix.

The search is linear on any text: each possible start is checked once, by its first characters, the text after it is
read once, and no quantifier is nested.
"""

import re
from collections.abc import Collection, Iterator
from functools import cache

from workflows.secrets.spans import Span
from workflows.secrets.token_formats import INNER, PREFIXED, SHAPED

_LONGEST = 200
"""The most characters read after the mark inside a token."""

_RUN = re.compile(r"[^\s\"'<>]{14,}")
"""A run of characters that is long enough for the shortest token."""

_HEAD = 2
"""How many first characters index the prefixes; the shortest prefix has three characters."""


def tokens(text: str, begins: Collection[int] = ()) -> Iterator[Span]:
    """Yield tokens of a known form. A token begins at the start of a word, so `task-...` does not contain `sk-...`;
    each position in `begins` counts as a start too.
    """
    if not _RUN.search(text):
        return
    yield from _prefixed_tokens(text, begins)
    for _, inside, before, whole in INNER:
        at = text.find(inside)
        while at >= 0:
            after = at + len(inside)
            if match := _pattern(rf"(?<![A-Za-z0-9_]){whole}").search(text, max(0, at - before), at + _LONGEST):
                yield match.span()
                after = max(after, match.end())
            at = text.find(inside, after)
    yield from _in_parts(text)


def _prefixed_tokens(text: str, begins: Collection[int]) -> Iterator[Span]:
    start, heads = _beginnings()
    for places in ((match.start() for match in start.finditer(text)), sorted(begins)):
        done: dict[str, int] = {}
        for at in places:
            for prefix, body in heads.get(text[at : at + _HEAD], ()):
                if at < done.get(prefix, 0) or not text.startswith(prefix, at):
                    continue
                if match := _pattern(body).match(text, at + len(prefix)):
                    yield at, match.end()
                    done[prefix] = match.end()


@cache
def _beginnings() -> tuple[re.Pattern[str], dict[str, list[tuple[str, str]]]]:
    """Return a pattern for possible starts, which never match inside a word, and the prefixes by their first
    characters.
    """
    heads: dict[str, list[tuple[str, str]]] = {}
    for prefix, body in _prefixes():
        heads.setdefault(prefix[:_HEAD], []).append((prefix, body))
    seconds: dict[str, str] = {}
    for head in sorted(heads):
        seconds[head[0]] = seconds.get(head[0], "") + re.escape(head[1])
    begin = "|".join(f"{re.escape(first)}[{second}]" for first, second in seconds.items())
    return re.compile(rf"(?:{begin})(?<![A-Za-z0-9_]..)"), heads


def _prefixes() -> tuple[tuple[str, str], ...]:
    known = [
        (prefix, f"[{rest}]{{{least},}}+=*+") for _, prefixes, rest, least in PREFIXED for prefix in prefixes.split()
    ]
    known += [(prefix, body) for _, prefixes, body in SHAPED for prefix in _split(prefixes)]
    return tuple(known)


def _split(prefixes: str) -> list[str]:
    """Split a list of prefixes at blanks. A list that ends with a space is one header, and stays whole."""
    return [prefixes] if prefixes.endswith(" ") else prefixes.split()


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_DISCORD = re.compile(r"[MNO](?<![\w.-].)[\w-]{23,28}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])", re.ASCII)
_MAILGUN = re.compile(r"[0-9a-f](?<![\w-].)[0-9a-f]{31}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])", re.ASCII)


def _in_parts(text: str) -> Iterator[Span]:
    """Yield tokens that have no prefix but parts of known lengths: those of Discord's bots, and recent ones of
    Mailgun.
    """
    if text.count(".") > 1:
        yield from (match.span() for match in _DISCORD.finditer(text))
    if text.count("-") > 1:
        yield from (match.span() for match in _MAILGUN.finditer(text))
