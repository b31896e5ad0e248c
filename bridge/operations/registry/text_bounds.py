"""Bounds of the texts that people write, checked before anything is stored (ruling B6)."""

from workflows.contract.size_limits import storable, too_long
from workflows.model.errors import UsageError
from workflows.text.durations import DurationError, parse_duration


def bounded(of: str, what: str, text: str) -> str:
    """Return the text, storable; refuse one over its bound, by the name of its option."""
    clean = storable(text)
    if sentence := too_long(of, clean):
        raise UsageError(f"{what} {sentence}")
    return clean


def bounded_or_none(of: str, what: str, text: str | None) -> str | None:
    """Return an optional text, storable and within its bound."""
    return bounded(of, what, text) if text else None


def limit(text: str | None) -> float | None:
    """Return the seconds of an optional timeout; refuse zero and anything that isn't a duration (ruling A10)."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise UsageError(f"the timeout {text!r} {error}") from None
    if not seconds:
        raise UsageError(f"the timeout {text!r} must be positive")
    return seconds
