"""Compilation of patterns with one meaning on every Python.

Before 3.11.5 a possessive group, `(...)*+`, that can match in several ways was matched wrongly: secrets were missed,
and results not found. An atomic group with an ordinary quantifier, `(?>(...)*)`, is equivalent and was always right.
Possessive single characters were right, too.
"""

import re
import sys

WRONG = sys.version_info < (3, 11, 5)
_POSSESSIVE = re.compile(r"([*+?]|\{\d*+(?:,\d*+)?\})\+")
_PART = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|[()]|[^\\\[()]+", re.DOTALL)


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern; required for every pattern with a possessive group."""
    return re.compile(atomic(pattern) if WRONG else pattern, flags)


def atomic(pattern: str) -> str:
    """Replace possessive groups in a pattern by atomic ones."""
    parts: list[str] = []
    opened: list[int] = []
    place = 0
    while part := _PART.match(pattern, place):
        place = part.end()
        parts.append(part[0])
        if part[0] == "(":
            opened.append(len(parts) - 1)
        elif part[0] == ")":
            begin = opened.pop()
            if quantifier := _POSSESSIVE.match(pattern, place):
                parts[begin] = f"(?>{parts[begin]}"
                parts.append(f"{quantifier[1]})")
                place = quantifier.end()
    return "".join(parts)
