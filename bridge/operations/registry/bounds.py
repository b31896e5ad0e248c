"""What people write, as it may be stored: the contract's bounds, said before anything is (ruling B6)."""

from workflows.contract.size_limits import storable, too_long
from workflows.model.errors import UsageError
from workflows.text.durations import DurationError, parse_duration


def bounded(of: str, what: str, text: str) -> str:
    """The text, storable; one over its bound is refused, by the name it is given under."""
    clean = storable(text)
    if sentence := too_long(of, clean):
        raise UsageError(f"{what} {sentence}")
    return clean


def bounded_or_none(of: str, what: str, text: str | None) -> str | None:
    """The same for what may be left out."""
    return bounded(of, what, text) if text else None


def limit(text: str | None) -> float | None:
    """Return the seconds of a timeout that may be left out; refuse what is no duration, and zero (ruling A10)."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise UsageError(f"the timeout {text!r} {error}") from None
    if not seconds:
        raise UsageError(f"the timeout {text!r} must be positive")
    return seconds
