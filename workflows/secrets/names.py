"""A finder of secrets by name: `TOKEN=...`, `"password": "..."`, `**Passwort:** ...`.

A name alone is not enough: its value must be a literal. Placeholders, expressions and sentences do not count.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from workflows.secrets.spans import Span
from workflows.secrets.values import (
    HARMLESS,
    bare_is_secret,
    expression,
    is_mixed,
    is_random,
    may_be_random,
    placeholder,
    quoted_is_secret,
)
from workflows.secrets.words import HINTS, NAME, OTHER_HINTS, OTHER_NAME

_SEARCHED = ((re.compile(NAME), HINTS), (re.compile(OTHER_NAME), OTHER_HINTS))
"""Patterns of names in lower-case text. Each has hints, one of which must occur before the pattern is tried."""
SECRET_KEY = re.compile(rf"(?is:.{{0,200}}(?:{NAME}|{OTHER_NAME}))")

_TYPE = (
    r"(?::?[ \t]++[A-Za-z_][\w.]{0,30}+(?:\[[\w., |]{1,30}\]|\[\])?(?:[ \t]*+\|[ \t]*+None)?(?=[ \t]*+=[ \t]*+[^\s=]))?"
)
"""The type of a literal, between its name and the assignment sign."""
_LEAD = (
    r"(?P<lead>(?:[A-Za-z_][\w.]{0,60}+(?:[\[(][\"'][\w.-]{1,60}[\"'][\])])?[ \t]*+(?:\|\||\?\?|\?:|or(?=[ \t]))[ \t]*+"
    r"|(?:new[ \t]++)?(?:[A-Za-z_][\w.]{0,40}+|\[\]byte)\((?:[\"'][\w.-]{1,60}[\"'],[ \t]*+|default[ \t]*+=[ \t]*+)?)?"
    r"(?:[brfuBRFU@]{1,2}(?=[\"']))?)"
)
"""Text that may stand before a literal: another source of the value, a call, a prefix."""
_PLAIN_LEAD = re.compile(r"(?:new[ \t]++)?(?:Sec\w*+\()?[brfuBRFU@]{0,2}")
_VALUE = re.compile(
    r"(?P<sep>\\*[\"'`]?(?:[\])][\"']?|[\"'])?" + _TYPE + r"[ \t]*+(?:=>|:=|==|=|:|\|\||\?\?)[ \t]*+"
    r"(?:!!binary[ \t]++)?)"
    r"(?:" + _LEAD + r"(?P<quote>\\*(?:\"\"\"|\'\'\'|[\"'`]))"
    r"(?P<quoted>(?:(?!(?P=quote))(?:[^\n\\]|\\.))*+)(?=(?P=quote))"
    r"|(?P<bare>(?:(?i:bearer|basic|token|apikey)[ \t]++)?[^\s\"'`,;&)}\]<>|\\]{3,}+)(?P<last>[ \t\r]*+(?:\n|\Z))?)"
)
_OPTION = re.compile(
    r"(?:[ \t]++|[\"'],\s{0,20}+(?=[\"'][^-])|[\"']?\r?\n[ \t]*+-[ \t]++(?!-))"
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\"'\n]{4,200}+)(?=(?P=quote))|(?P<bare>[^-$<{\[(\s\"'`][^\s\"'`]{3,}+))"
)
_IS = r"(?:is|was|to|ist|lautet|est|es|é|è|là|jest)"
_SAID = re.compile(
    rf"(?:[ \t]*+(?:(?<=[ \t]){_IS}|[是为為は는은])?[ \t]*+(?::[ \t]++|(?<=[ \t]))|[是为為は\uff1a])[\"'`]?"
    r"(?P<bare>[^\s\"'`,;()<>]{8,200}+)"
)
_SHOWN = re.compile(
    # The end of the name: in Markdown or HTML, with words behind it.
    rf"[*_~`\"'\]]{{0,6}}(?:[ \t]+{_IS}(?=:))?"
    r"(?:[ \t]+(?:for|of|to|von|für|pour|de|del|para|per|от|для)[ \t]+[\w.-]{1,40}(?:[ \t][\w.-]{1,40})?(?=:))?"
    r"(?P<tag></\w{1,10}>)?[ \t]*+"
    r"(?P<sign>::?|=>|->|\u2192|\u2014|\u2013|=|\||\(|(?=\r?\n)|(?=</?\w{1,10}>)|(?<=>)|(?=[\"'`]))"
    r"[*_~]{0,3}(?:</\w{1,10}>\s{0,40})?[ \t]*+(?:!!binary[ \t]+)?"
    # The value is on the next line, or the one after that; quoted, in a block, as an item.
    r"(?P<broken>(?P<block>[>|][+-]?|\\)?[ \t]*+\r?\n(?:[ \t]*+\r?\n)?(?:```\w{0,12}\r?\n)?[ \t]*+(?:[>-][ \t]++)?)?"
    r"(?P<open><\w{1,10}>)?[*_~]{0,3}"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\n\"'`]{4,200}+)(?=(?P=quote))|(?P<bare>[^\s\"'`,;<>|()]{6,200}+))"
    r"(?P<last>[*_~`\"']{0,4}(?:</\w{1,10}>)?[ \t]*+(?:\r?\n|\Z))?"
)

_LOWER = {
    code: ord(chr(code).lower())
    for code in (*range(ord("A"), ord("Z") + 1), *range(0xC0, 0xDF), 0x141, 0x15E, *range(0x410, 0x430))
}
"""The lower-case mapping of characters that are one character long in both cases, for the supported languages."""


def named_values(text: str) -> Iterator[Span]:
    """Yield the spans of values that are assigned to a name such as `TOKEN` or `password`."""
    lower = text.lower() if text.isascii() else text.translate(_LOWER)
    for searched, hints in _SEARCHED:
        if any(hint in lower for hint in hints):
            yield from _values_under(text, lower, searched)


def _values_under(text: str, lower: str, searched: re.Pattern[str]) -> Iterator[Span]:
    done = 0
    for match in searched.finditer(lower):
        if match.start() >= done and (span := _under(text, *match.span())):
            done = span[1]
            yield span


def _under(text: str, start: int, end: int) -> Span | None:
    """Return the secret that is assigned to the name at this place, if any."""
    if value := _VALUE.match(text, end):
        return _assigned_value(text, start, end, value)
    if option := _OPTION.match(text, end) if _is_option(text, start) else None:
        if option["quoted"] is not None:
            return option.span("quoted") if quoted_is_secret("PASSPHRASE", option["quoted"]) else None
        return None if HARMLESS.fullmatch(option["bare"]) else option.span("bare")
    if (sentence := _SAID.match(text, end)) and is_mixed(sentence["bare"]):
        bare = sentence["bare"].rstrip(".!?:")
        if may_be_random(bare) and not placeholder(bare):
            return sentence.start("bare"), sentence.start("bare") + len(bare)
    if value := _SHOWN.match(text, end):
        return _shown_value(text, start, end, value)
    return None


def _shown_value(text: str, start: int, end: int, value: re.Match[str]) -> Span | None:
    """Return the value of a name in text for people. It counts if it looks like a secret, or if the name leaves no
    doubt.
    """
    name, quoted = text[start:end], value["quoted"]
    called = value["sign"] == "("
    of_people = name.lower().startswith("pass") or not name.isascii()
    if value["broken"] is not None and (
        called or value["last"] is None or not (value["sign"] or value["tag"] or _is_heading(text, start))
    ):
        return None
    if quoted is not None:
        surely = not called and (is_mixed(quoted) or (of_people and value["sign"] != "") or value["broken"] is not None)
        secret = quoted_is_secret(name, quoted) and not expression(quoted) and (surely or is_random(quoted))
        return value.span("quoted") if secret else None
    bare = value["bare"].rstrip(".,!?:*_~")
    unmarked = value["sign"] == "" and value["broken"] is None
    if placeholder(bare) or expression(bare) or (unmarked and not is_random(bare)):
        return None
    if called and ("=" in bare or not text.startswith(")", value.end("bare"))):
        return None
    set_apart = (value["block"] or value["open"]) and of_people and len(bare) >= 8
    return (value.start("bare"), value.start("bare") + len(bare)) if set_apart or is_random(bare) else None


def _is_heading(text: str, start: int) -> bool:
    return text[max(0, start - 40) : start].rpartition("\n")[2].lstrip().startswith("#")


def is_secret(name: str, value: str) -> bool:
    """Return whether the whole value of a member or variable with this name is a secret."""
    return _is_name_of_one(name) and quoted_is_secret(name, value)


@lru_cache(maxsize=1024)
def _is_name_of_one(name: str) -> bool:
    """Return whether a name, such as `password`, is a secret's name. Results are cached, since names recur."""
    return bool(SECRET_KEY.fullmatch(name))


def _assigned_value(text: str, start: int, end: int, value: re.Match[str]) -> Span | None:
    name, quoted = text[start:end], value["quoted"]
    if name.lower() == "key" and not (name == "KEY" and text[start - 1] == "_" and is_mixed(quoted or value["bare"])):
        return None
    compared = value["sep"].strip() == "=="
    if quoted is not None:
        surely = is_random(quoted) or (_PLAIN_LEAD.fullmatch(value["lead"]) and (is_mixed(quoted) or not compared))
        secret = quoted_is_secret(name, quoted) and surely
        return value.span("quoted") if secret else None
    if compared or (start and text[start - 1] in "$%{"):
        return None
    tight = value["sep"] in ("=", "=>")
    last = value["last"] is not None
    secret = bare_is_secret(name, value["bare"], tight=tight, last=last)
    return value.span("bare") if secret else None


def _is_option(text: str, start: int) -> bool:
    """Return whether the name ends a word that begins with a double dash."""
    word = text[max(0, start - 40) : start].split()
    return bool(word) and not text[start - 1].isspace() and "--" in word[-1]
