"""Redaction of secrets in text before it is stored, shown or cut (rulings A12, N7).

Secrets are found by form, name or place, in the raw text and in its decoded views: invisible characters removed,
escapes decoded, broken lines joined, base64 decoded. The matching part of the original is replaced; everything else
stays unchanged.

No library is used: the finders have to work on any text and its views, in linear time, and to leave harmless words
alone. Hosts add the secret values that they know (`activities/redaction/redact.py`).
"""

import re
from collections.abc import Callable, Iterator

from pydantic import JsonValue

from workflows.secrets.commands import commands
from workflows.secrets.decoded_views import across_breaks, decoded_runs, without_escapes, without_quoting
from workflows.secrets.names import is_secret, named_values
from workflows.secrets.private_keys import keys
from workflows.secrets.spans import Finder, Span, merge_spans, replace_spans
from workflows.secrets.tables import columns, mnemonics
from workflows.secrets.tokens import tokens
from workflows.secrets.urls_and_files import places

MARK = "[redacted]"
_SHORTEST = 6
_LAYERS = 5
_DONE = re.compile(r"\[redacted\]|redacted-[0-9a-f]{20}")
"""The marks that replace secrets."""

_TIMES = 6
"""The most passes over a text; redaction ends earlier when a pass finds nothing."""


def redact(
    text: str,
    also: Finder | None = None,
    by: Callable[[str], str] | None = None,
    search: Callable[[str, Finder | None], list[Span]] | None = None,
) -> str:
    """Replace every secret in the text. Redacting the result again changes nothing (rulings A12, N7).

    `also` finds secrets that this process knows. `by` returns the replacement of a secret; the default is `[redacted]`.
    `search` replaces `secrets_in`.
    """
    for _ in range(_TIMES):
        if not (spans := (search or secrets_in)(text, also)):
            break
        changed = replace_spans(text, spans, by or _mark)
        if changed == text:
            break
        text = changed
    return text


def secrets_in(text: str, also: Finder | None = None) -> list[Span]:
    """Return the spans of secrets, in order and without overlaps."""
    if len(text) < _SHORTEST:
        return []
    return [span for span in merge_spans(_find(text, also, _LAYERS)) if not _DONE.fullmatch(text, *span)]


def redact_value(value: JsonValue, text: Callable[[str], str] = redact) -> JsonValue:
    """Redact every string of a JSON value; a string under the name of a secret is replaced as a whole."""
    match value:
        case str():
            return text(value)
        case list() | tuple():
            return [redact_value(item, text) for item in value]
        case dict():
            return {text(name): _member(name, item, text) for name, item in value.items()}
        case _:
            return value


def _member(name: str, value: JsonValue, text: Callable[[str], str]) -> JsonValue:
    return MARK if isinstance(value, str) and is_secret(name, value) else redact_value(value, text)


def _mark(_secret: str) -> str:
    return MARK


def _find(text: str, also: Finder | None, layers: int) -> Iterator[Span]:
    yield from tokens(text)
    yield from keys(text)
    yield from places(text)
    yield from commands(text)
    yield from columns(text)
    yield from mnemonics(text)
    yield from named_values(text)
    if also is not None:
        yield from also(text)
    yield from across_breaks(text, lambda whole, begins: [*tokens(whole, begins), *(also(whole) if also else ())])
    if layers > 0:
        yield from decoded_runs(text, lambda decoded: _find(decoded, also, min(layers - 1, 2)))
        for under in (without_escapes(text), without_quoting(text)):
            if under is not None:
                yield from map(under.back, _find(under.text, also, layers - 1))
