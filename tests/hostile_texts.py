"""Texts derived from a pattern that make a backtracking engine work hard: each repetition pumped, behind its prefix."""

import re
from collections.abc import Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_TRIED = "aA1_-\"':=/.,@+\\ \t\n\u200b"
_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
PLAIN = ("x", "\nx", "x1", "x ", " ", "\n")


def hostile(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    """Yield texts of a size: plain ones, the pattern's own beginning, and each of its repetitions."""
    for prefix, pump in dict.fromkeys(_units(pattern)):
        yield f"{(prefix + pump * (size // len(pump) + 1))[: size - 1]}\x01"


def sample(pattern: re.Pattern[Any]) -> str:
    """Return a text that the pattern nearly matches: lookarounds are left out."""
    return _walked(_parsed(pattern), "", {}, [])


def _units(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    repeats: list[tuple[str, str]] = []
    whole = _walked(_parsed(pattern), "", {}, repeats)
    yield from (("", text) for text in (*PLAIN, whole, whole[:-1]) if text)
    for prefix, pump in repeats:
        yield from ((prefix, pump), ("", prefix + pump), ("", pump * 50 + "\n"))


def _parsed(pattern: re.Pattern[Any]) -> Any:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return parser.parse(text, pattern.flags & ~(0 if isinstance(pattern.pattern, str) else re.UNICODE))


def _walked(tree: Any, before: str, groups: dict[int, str], repeats: list[tuple[str, str]]) -> str:
    """Return a sample of a sequence; add each repetition and alternative in it, with the text that leads to it."""
    text = ""
    for kind, value in tree:
        match kind:
            case op.LITERAL:
                text += chr(value)
            case op.NOT_LITERAL:
                text += next(sign for sign in _TRIED if ord(sign) != value)
            case op.ANY:
                text += "a"
            case op.IN:
                text += _member(value)
            case op.BRANCH:
                branches = [_walked(branch, before + text, groups, repeats) for branch in value[1]]
                if len(branches) <= 4:
                    repeats += ((before + text, branch) for branch in branches if branch)
                text += branches[0]
            case op.SUBPATTERN:
                groups[value[0]] = _walked(value[3], before + text, groups, repeats)
                text += groups[value[0]]
            case op.ATOMIC_GROUP:
                text += _walked(value, before + text, groups, repeats)
            case _ if kind in _REPEATS:
                least, most, inner = value
                pump = _walked(inner, before + text, groups, repeats)
                if most > 8 and pump:
                    repeats.append((before + text, pump))
                text += pump * max(least, 1)
            case op.ASSERT | op.ASSERT_NOT:
                _walked(value[1], before + text, groups, repeats)
            case op.GROUPREF:
                text += groups.get(value, "")
            case op.GROUPREF_EXISTS:
                text += _walked(value[1], before + text, groups, repeats)
            case _:
                pass
    return text


def _member(members: Any) -> str:
    """Return a character of a class."""
    allowed = [sign for sign in _TRIED if _is_in(members, sign)]
    kind, value = members[-1]
    return allowed[0] if allowed else chr(value[0] if kind is op.RANGE else value)


def _is_in(members: Any, sign: str) -> bool:
    is_in = negated = False
    for kind, value in members:
        match kind:
            case op.NEGATE:
                negated = True
            case op.LITERAL:
                is_in |= value == ord(sign)
            case op.RANGE:
                is_in |= value[0] <= ord(sign) <= value[1]
            case op.CATEGORY:
                is_in |= re.match(_CATEGORIES[value], sign) is not None
            case _:
                pass
    return is_in != negated
