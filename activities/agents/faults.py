"""Tell an agent's blockers (no login, rate limit) from its failures: by HTTP status if there is one, else by the
message.

The end of a limit is parsed from the message. No library: libraries that parse dates in prose find false ones, and a
false date makes a job wait.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo

from workflows.text.durations import UNITS


class BlockerKind(StrEnum):
    """The kind of change needed before the program can work; the job itself is not at fault."""

    LOGIN = "login"
    """A person has to log in."""
    RATE_LIMIT = "rate_limit"
    """Time has to pass; includes daily and weekly quotas."""
    NETWORK = "network"
    """The model's service is unreachable or out of order."""
    PROGRAM = "program"
    """The program has to be installed or updated."""
    KILLED = "killed"
    """Something outside of the service killed the program; another try may end better."""


@dataclass(frozen=True)
class Blocker:
    """A blocker: the program's message, when it ends if known, and the command to type."""

    kind: BlockerKind
    message: str
    until: float | None = None
    hint: str = ""


@dataclass(frozen=True)
class Failed:
    """A failure of the program itself; its output is not a result."""

    message: str


class SessionLost(Failed):
    """The session could not be resumed. The program did nothing, and can start a new session."""


class ModelRefused(Failed):
    """The provider refused the job's model, or the program's default model."""


class ContextFull(Failed):
    """A context that is too long for the model."""


Fault = Blocker | Failed

_WORDS = {
    BlockerKind.RATE_LIMIT: (
        *(r"\brate.?limit", r"\b(?:usage|session|weekly|hour) limit", r"\bhit your \S* ?limit", r"\bquota\b"),
        *("too many requests", r"out of (?:extra )?usage", "credit balance"),
    ),
    BlockerKind.LOGIN: (
        *(
            "unauthori[sz]ed",
            "not logged in",
            r"/login\b",
            "log ?in again",
            "failed to authenticate",
            r"\bauth_error\b",
        ),
        *("missing environment variable", r"api.?key\b.*\b(?:invalid|missing)", "(?:oauth|access|refresh) token"),
        "(?:invalid|incorrect|missing) (?:api.?key|x-api-key|bearer)",
    ),
    BlockerKind.NETWORK: (
        *("overloaded", "high demand", "waiting for network", "stream disconnected", "network error", "timed out"),
        *("connection (?:error|failed|dropped|refused|reset)", r"\bconnection_error\b", "error sending request"),
        *(r"\bE(?:CONN\w+|NOTFOUND|AI_AGAIN|TIMEDOUT)\b", r"server_error\b", "internal server error"),
        *("bad gateway", "service unavailable"),
    ),
}
_SIGNS = tuple((kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDS.items())
_STATUS = re.compile(r"(?:\bstatus:? |\berror:? |\brejected \(|\b[a-z]+_(?:error|limit): )(\d{3})\b", re.IGNORECASE)
MESSAGE_LIMIT = 600


def kind_of(message: str, status: int | None = None) -> BlockerKind | None:
    """Return the kind of blocker that a message reports; an HTTP status, given or in the message, decides before its
    words.
    """
    if status is None and (named := _STATUS.search(message)):
        status = int(named[1])
    match status:
        case 401 | 403:
            return BlockerKind.LOGIN
        case 402 | 429:
            return BlockerKind.RATE_LIMIT
        case int() if status == 408 or 500 <= status < 600:
            return BlockerKind.NETWORK
        case int() if 400 <= status < 500:
            return None
        case _:
            return next((kind for kind, sign in _SIGNS if sign.search(message)), None)


_NAME = r"(?:[`'\"]?[\w./:@-]+[`'\"]? )?"
_MODEL_REFUSED = re.compile(
    rf"\bmodel:? {_NAME}(?:(?:is|was) )?(?:does )?not (?:supported|exist|found)\b|\bmodel_not_found\b"
    r"|\bnot found the model\b"
    r"|\b(?:unknown|unsupported|invalid|no such) model\b|\baccess to (?:the )?model\b|issue with the selected model",
    re.IGNORECASE,
)
_CONTEXT_FULL = re.compile(
    r"context_length_exceeded|prompt is too long|maximum context length"
    r"|(?:exceeds|room in|larger than|longer than) (?:the |this )?(?:model(?:'s)? |maximum )?context",
    re.IGNORECASE,
)


def failure_of(message: str, words: str) -> Failed:
    """Return the failure that a program's message describes, in these words."""
    if _MODEL_REFUSED.search(message):
        return ModelRefused(words)
    return ContextFull(words) if _CONTEXT_FULL.search(message) else Failed(words)


def cut(message: str) -> str:
    """Shorten a program's message to one line, at most as long as a reason may be."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"


_EPOCH = re.compile(r"(?:\||resets?_?at\W{1,4})(\d{10})\b", re.IGNORECASE)
_ISO = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)")
_SPAN = r"\d+(?:\.\d+)?\s*(?:d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)\b"
_IN = re.compile(
    rf"(?:again|resets?|retry|retrying|available|wait)\W+(?:(?:in|after|for|about)\W+)*((?:{_SPAN}(?:,|\s|and)*)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(?<!\d)(\d{1,9}(?:\.\d{1,9})?)\s{0,9}([dhms])", re.IGNORECASE)
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
"""A time of day that passed within this span is taken as today's, not tomorrow's: the message came late."""


def reset_time(message: str, now: float) -> float | None:
    """Return the end of a limit in seconds since the epoch; None if the message names none in the future."""
    moment = _instant(message) or _later(message, now) or _clock(message, now)
    return moment if moment and moment > now else None


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
    match = _AT.search(message)
    if match is None or not (match["half"] or match["minute"]):
        return None
    today = datetime.fromtimestamp(now, _zone(match["zone"])).astimezone(_zone(match["zone"]))
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    try:
        at = today.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
        if match["month"]:
            month = _MONTHS.index(match["month"].lower()) + 1
            return at.replace(int(match["year"] or today.year), month, int(match["day"])).timestamp()
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
