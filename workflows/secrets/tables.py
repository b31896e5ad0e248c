"""A finder of secrets in table columns, and of mnemonic phrases."""

import re
from collections.abc import Iterator
from itertools import pairwise

from workflows.secrets.spans import Span
from workflows.secrets.values import is_mixed, is_random, placeholder
from workflows.secrets.words import NAME, OTHER_NAME

_HEADER = re.compile(
    rf"(?:(?<=[|,;\t])|^)[ \t]*+[*_`\"]{{0,3}}[\w -]{{0,30}}?(?:{NAME}|{OTHER_NAME})[*_`\"]{{0,3}}[ ]*+"
    r"(?=[|,;\t]|\r?\Z)",
    re.IGNORECASE,
)
_CODE = re.compile(r"[()\[\]{}=]")
_LONGEST = 500
"""The longest line, in characters, that is read as part of a table."""


def columns(text: str) -> Iterator[Span]:
    """Yield the cells below a header that names a secret, in Markdown, CSV or tab-separated text."""
    sign, signs, secret = "", 0, dict[int, bool]()
    at = 0
    for line, after in pairwise(f"{text}\n".split("\n")):
        if secret and line.count(sign) == signs and len(line) <= _LONGEST:
            yield from _cells(line, at, sign, secret)
        else:
            sign = next((sign for sign in "|\t;," if sign in line), "")
            signs = line.count(sign)
            secret = _names(line, sign) if sign and after.count(sign) == signs else {}
        at += len(line) + 1


def _names(line: str, sign: str) -> dict[int, bool]:
    """Return the columns whose header names a secret, each with whether it is a password's name."""
    if len(line) > _LONGEST or _CODE.search(line):
        return {}
    headers = _HEADER.finditer(line)
    return {line.count(sign, 0, name.start()): "pass" in name[0].lower() or not name[0].isascii() for name in headers}


def _cells(line: str, at: int, sign: str, secret: dict[int, bool]) -> Iterator[Span]:
    for column, cell in enumerate(line.split(sign)):
        value = cell.strip().strip("*_`\"'")
        if column in secret and len(value) >= 6 and not placeholder(value):
            surely = sign == "|" and cell.strip()[0] in "`\"'" and (secret[column] or is_mixed(value))
            if surely or is_random(value):
                start = at + cell.index(value)
                yield start, start + len(value)
        at += len(cell) + 1


_PHRASE = re.compile(
    r"(?:mnemonic|seed"
    r"|(?:seed|recovery|backup|wallet)[ _-]?(?:recovery[ _-]?|seed[ _-]?)?(?:phrase|words?|mnemonic|seed))"
    r"(?:[^\w\n]{0,4}[ ](?:is|are)\s|[^\w]{0,8}[:=\"'`\n>][^\w]{0,8})"
    r"(?P<words>(?:(?:[0-9]{1,2}[.)]?[ \t]+)?[a-z]{3,8},?\s{1,8}){11,30}+(?:(?:[0-9]{1,2}[.)]?[ \t]+)?[a-z]{3,8})?)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+,?(?P<line>\s*\n)?")
_COUNTS = (12, 15, 18, 21, 24)
_NEVER = {"the", "and", "for", "are", "not", "from", "was", "were", "but", "its", "has", "had", "our", "may", "these"}
"""Common words that no word list for mnemonics contains."""


def mnemonics(text: str) -> Iterator[Span]:
    """Yield phrases of twelve to twenty-four words that follow a word for such a phrase."""
    lower = text.lower()
    if not any(hint in lower for hint in ("mnemonic", "seed", "recovery", "backup", "wallet")):
        return
    for match in _PHRASE.finditer(text):
        if end := _end_of_phrase(text, *match.span("words")):
            yield match.start("words"), end


def _end_of_phrase(text: str, start: int, end: int) -> int:
    """Return the end of a phrase of valid length, at a line's end or before other text; 0 if there is none."""
    last = count = 0
    for word in _WORD.finditer(text, start, end):
        if word[0].strip(", \r\n").lower() in _NEVER:
            break
        count += 1
        at = word.start() + len(word[0].rstrip())
        if count in _COUNTS and (word["line"] or at == end or not text[at : at + 1].isspace()):
            last = at
    else:
        return last
    return at if count in _COUNTS else last
