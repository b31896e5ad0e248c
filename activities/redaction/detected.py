"""Secrets that a host finds beside the forms, names and places of `workflows.contract`.

These are values that this process knows, and tokens that the detector `redact-secret` knows: its maintainers follow the
issuers.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from activities.redaction import known_values

if TYPE_CHECKING:
    from workflows.secrets.spans import Span

_OURS = frozenset({"contextual_secret", "connection_string_password"})
"""Kinds recognised by a name or a place: `workflows.contract` finds those, with fewer false positives."""

_SHORTEST = 14
_NO_BOUND = 2**40


def find(text: str) -> "Iterator[Span]":
    """Yield the spans of secrets that only this process, or the detector, knows."""
    yield from known_values.process().find(text)
    if len(text) >= _SHORTEST:
        yield from _tokens(text)


def _tokens(text: str) -> "Iterator[Span]":
    import redact_secret  # a compiled module, not for commands that write nothing

    limits = redact_secret.WholeInputLimits(max_input_bytes=_NO_BOUND, max_findings=_NO_BOUND)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # surrogates are no characters; the length stays
    try:
        tokens = redact_secret.scan(text, limits=limits)
    except redact_secret.SecretScanError:
        return  # the service's own rules remain
    yield from ((token.start, token.end) for token in tokens if token.type not in _OURS)
