"""A strict JSON parser: every body has exactly one meaning (ruling J3).

The available libraries accept duplicate names, or NaN.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from activities.redaction.kept_secrets import without_words
from activities.redaction.redact import map_texts
from bridge.http.wire.errors import InvalidJsonError

DEPTH = 64
_EXACT = 2**53
"""The largest integer up to which floats are exact."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def decode(body: bytes) -> Any:
    """Decode one value in UTF-8: no duplicate member, lone surrogate, NUL, NaN or Infinity, nested at most `DEPTH`
    deep.

    Placeholders of kept secrets are redacted; otherwise one caller could have another's secret filled in (ruling N7).
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidJsonError(f"the body is not UTF-8: byte {error.start} does not fit") from None
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        raise InvalidJsonError(f"the body is not one JSON value: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    _check(value)
    return map_texts(value, without_words)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise InvalidJsonError(f"the member {twice[:100]!r} occurs twice in one object")
    return members


def _check(value: Any) -> None:
    """Check depth and texts, one level after another instead of recursively, so that no nesting can exhaust
    the stack.
    """
    level, depth = [value], 0
    while level:
        containers = [node for node in level if isinstance(node, dict | list)]
        if containers and depth == DEPTH:
            raise _too_deep()
        strings = [node for node in level if isinstance(node, str)]
        strings += [name for node in containers if isinstance(node, dict) for name in node]
        _check_text("".join(strings))
        level = [inner for node in containers for inner in (node.values() if isinstance(node, dict) else node)]
        depth += 1


def _check_text(text: str) -> None:
    if "\0" in text:
        raise InvalidJsonError("a string in the body holds U+0000")
    if _SURROGATE.search(text):
        raise InvalidJsonError("a string in the body holds a surrogate without its other half")


def _no_constant(name: str) -> NoReturn:
    raise InvalidJsonError(f"{name} is not JSON")


def _whole(text: str) -> int:
    """Parse an integer. Python refuses those of thousands of digits, whose conversion takes long."""
    try:
        return int(text)
    except ValueError:
        raise _too_large(text) from None


def _finite(text: str) -> float | int:
    """Parse a number. JSON has one kind of number, so `1.0` is the integer 1."""
    number = float(text)
    if not math.isfinite(number):
        raise _too_large(text)
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number


def _too_large(text: str) -> InvalidJsonError:
    return InvalidJsonError(f"the number {text[:40]} in the body is too large")


def _too_deep() -> InvalidJsonError:
    return InvalidJsonError(f"the body is nested more than {DEPTH} levels deep")
