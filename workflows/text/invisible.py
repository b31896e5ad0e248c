r"""The definition of invisible characters, and their visible forms (ruling N6).

Invisible are controls, direction marks, zero-width characters, tags, selectors that carry bytes, fillers, private and
unassigned code points, and line ends other than the usual one. They are shown as escapes (`\x1b`, `\u202e`,
`\U000e0041`), so that a reader sees them. Characters that scripts and emoji need stay: combining marks, right-to-left
letters, a joiner or non-joiner between two letters of a script that joins (Arabic, Indic and similar ones), a joiner
between two emoji, the selector of an emoji or of a Mongolian letter. Only one such character may stand in such a place,
so that no data can be hidden there.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

PREFIX = "  | "
"""Prefix of every line of foreign text, so that none can be mistaken for a line of the service."""

_IGNORED = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are drawn as nothing although they may count as letters; `isprintable` does not know all of them."""

_MARKED = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING = (
    "\u0600-\u061b\u061d-\u07ff\u0840-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa"
    "\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
)
_NEEDED = (
    f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"
    f"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d]"
)
_RESERVED = re.compile("[\U0001f000-\U0001faff\U00020000-\U0003fffd]")
"""Ranges that Unicode reserves for emoji and ideographs: newer versions assign more of these characters than this
Python knows.
"""


def visible(text: str) -> str:
    """Escape invisible characters; line ends and tabs stay."""
    return _escape_unseen(text.replace("\r\n", "\n"), "\n\t")


def one_line(text: str) -> str:
    """Escape invisible characters and line ends, so that the text fits into one line of the service's own output."""
    return _escape_unseen(text, "")


def prefix_lines(text: str) -> list[str]:
    """Return the lines of a foreign text, each with a prefix that distinguishes it from the service's own lines."""
    return [f"{PREFIX}{line}".rstrip() for line in visible(text).rstrip("\n").split("\n")]


def in_json(document: str) -> str:
    r"""Write the invisible characters of a JSON document as `\uXXXX`, which does not change its meaning."""
    return document if _is_plain(document) else _replace_unseen(document, "\n", _json_escape)


def without_invisible(text: str) -> str:
    """Mark control and direction characters and drop zero-width ones, for texts on GitHub; line ends and tabs stay."""
    return text if _is_plain(text) else _replace_unseen(text, "\n\t", _mark)


def _escape_unseen(text: str, kept: str) -> str:
    return text if _is_plain(text) else _replace_unseen(text, kept, _escape)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _replace_unseen(text: str, kept: str, how: Callable[[str], str]) -> str:
    """Replace invisible characters, except those in `kept`. Each distinct character is looked up only once, which keeps
    long texts cheap.
    """
    table = {ord(letter): how(letter) for letter in set(text) if letter not in kept and _is_unseen(letter)}
    if not table:
        return text
    pieces, done = [], 0
    for needed in _needed_pattern().finditer(text):
        pieces += [text[done : needed.start()].translate(table), needed[0]]
        done = needed.end()
    return "".join([*pieces, text[done:].translate(table)])


@cache
def _needed_pattern() -> re.Pattern[str]:
    """Compile the pattern on first use: every command imports this module."""
    return re.compile(_NEEDED)


@lru_cache(4096)
def _is_unseen(letter: str) -> bool:
    if letter.isprintable():
        return _IGNORED.match(letter) is not None
    kind = unicodedata.category(letter)
    return kind != "Zs" and not (kind == "Cn" and _RESERVED.match(letter))


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _mark(letter: str) -> str:
    without_width = not _MARKED.match(letter) and (_IGNORED.match(letter) or unicodedata.category(letter) == "Cf")
    return "" if without_width else "\N{REPLACEMENT CHARACTER}"
