"""Blockers of agents, distinguished from their failures: by status if there is one, else by the message."""

import re
from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True)
class Blocker:
    """A blocker in the program's words; its end, if known; and the command to type."""

    kind: BlockerKind
    message: str
    until: float | None = None
    hint: str = ""


@dataclass(frozen=True)
class Failed:
    """A failure of the program itself; its output is not a result."""

    message: str


class SessionLost(Failed):
    """A failure to resume the session: the program did nothing, and can start a new one."""


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
    """Return the kind of a message; an HTTP status, given or found in it, precedes its words."""
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


def cut(message: str) -> str:
    """Shorten a program's message to one line of a reason's length."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"
