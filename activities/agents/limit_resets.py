"""The end of a rate limit, parsed from a program's message.

No library: those that find dates in prose also find them where none is meant, and a wrong one makes a job wait.
"""

import re
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from workflows.text.durations import UNITS

_EPOCH = re.compile(r"(?:\||resets?_?at\W{1,4})(\d{10})\b", re.IGNORECASE)
_ISO = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)")
_SPAN = r"\d+(?:\.\d+)?\s*(?:d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)\b"
_IN = re.compile(
    rf"(?:again|resets?|retry|retrying|available|wait)\W+(?:(?:in|after|for|about)\W+)*((?:{_SPAN}(?:,|\s|and)*)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.IGNORECASE)
_AFTER = re.compile(r"retry.?after\W{1,4}(\d+)\b", re.IGNORECASE)
_AT = re.compile(
    r"(?:again|resets?)\W+(?:(?:at|on)\W+)?"
    r"(?:(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\W+(?P<day>\d{1,2})(?:st|nd|rd|th)?\W+"
    r"(?:(?P<year>\d{4})\W+)?(?:at\W+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)?\b(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_JUST_NOW = timedelta(hours=1)
"""A time of day that passed so recently is not tomorrow's: the message is merely late."""


def reset_time(message: str, now: float) -> float | None:
    """Return the end of a limit in seconds since the epoch; None if the message names none in the future."""
    found = _instant(message) or _later(message, now) or _clock(message, now)
    return found if found and found > now else None


def _instant(message: str) -> float | None:
    if epoch := _EPOCH.search(message):
        return float(epoch[1])
    iso = _ISO.search(message)
    return datetime.fromisoformat(iso[0]).timestamp() if iso else None


def _later(message: str, now: float) -> float | None:
    if span := _IN.search(message):
        return now + sum(float(number) * UNITS[unit.lower()] for number, unit in _PART.findall(span[1]))
    after = _AFTER.search(message)
    return now + float(after[1]) if after else None


def _clock(message: str, now: float) -> float | None:
    """Parse `resets 3pm (Europe/Berlin)`, `try again at Nov 21st, 2026 3:15 PM`; without a zone, in local time."""
    found = _AT.search(message)
    if found is None or not (found["half"] or found["minute"]):
        return None
    today = datetime.fromtimestamp(now, _zone(found["zone"])).astimezone(_zone(found["zone"]))
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    try:
        at = today.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            return at.replace(int(found["year"] or today.year), month, int(found["day"])).timestamp()
    except ValueError:
        return None
    if at < today - _JUST_NOW:
        at += timedelta(days=1)
    return at.timestamp()


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None
