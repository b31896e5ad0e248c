"""Durations as people and agents write them: numbers with units, the largest unit first (ruling A10); and times for
people.

No library is used: they accept more forms than the contract allows, and do not explain errors.
"""

import re
from datetime import UTC, datetime

UNITS: dict[str, float] = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
LONGEST_SECONDS = 3_650 * UNITS["d"]

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_DURATION = re.compile("".join(rf"(?:({_NUMBER}){unit})?" for unit in UNITS))
_SPELT_UNIT = "days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s"
_SPELT = re.compile(rf"({_NUMBER})\s*({_SPELT_UNIT})(?![a-z])\s*,?\s*(?:and\s+)?", re.IGNORECASE)
_BARE = re.compile(r"[+-]?" + _NUMBER)


class DurationError(ValueError):
    """A text is not a valid duration; the message completes the sentence "<field> ..."."""


def parse_duration(text: str) -> float:
    """Parse `30m`, `1h30m` or `250ms` to seconds (ruling A10). Zero is accepted here; callers may refuse it."""
    match = _DURATION.fullmatch(text)
    if text.startswith("-"):
        raise DurationError("must be positive")
    if _BARE.fullmatch(text):
        raise DurationError(f'needs a unit: write "{text}s" for seconds or "{text}m" for minutes')
    if not text or match is None:
        raise DurationError('must be a duration such as "90s", "30m" or "1h30m" (units d, h, m, s, ms, largest first)')
    seconds = sum(float(number) * size for number, size in zip(match.groups("0"), UNITS.values(), strict=True))
    if seconds > LONGEST_SECONDS:
        raise DurationError(f"must be at most {format_duration(LONGEST_SECONDS)}")
    return seconds


def abbreviate(text: str) -> str:
    """Abbreviate a duration with units written in full: `2 days` becomes `2d`. Return any other text unchanged."""
    short = _SPELT.sub(lambda match: f"{match[1]}{match[2][0].lower()}", text.strip())
    return short if _DURATION.fullmatch(short) else text


def format_duration(seconds: float) -> str:
    """Format seconds in the shortest form, exact to the millisecond: 5400 becomes `1h30m`."""
    left = round(seconds * 1000)
    parts = []
    for unit, size in UNITS.items():
        count, left = divmod(left, round(size * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def clock(at: float) -> str:
    """Format a time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f} s after 1970"
