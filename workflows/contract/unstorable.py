"""Checks of all text and numbers in a result, at any depth: everything must be storable."""

import math
from collections.abc import Iterator

from pydantic import JsonValue

from workflows.contract.faults import member, quote
from workflows.contract.locate import Members
from workflows.contract.storable import UNSTORABLE

MAX_DEPTH = 100


def unclean(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Yield a path, and what completes the sentence about it, for every unstorable part of a value, in written
    order.
    """
    rest: list[tuple[JsonValue, str, int]] = [(value, path, 0)]
    while rest:
        value, path, depth = rest.pop()
        for sentence in _complaints(value):
            yield path, sentence
        if isinstance(value, dict | list) and depth >= MAX_DEPTH:
            yield path[:200], f"is nested deeper than {MAX_DEPTH} levels"
        elif isinstance(value, dict):
            rest.extend((value[name], member(path, name), depth + 1) for name in reversed(value))
        elif isinstance(value, list):
            rest.extend((value[i], f"{path}[{i}]", depth + 1) for i in reversed(range(len(value))))


def _complaints(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from _text_complaints(value, "contains")
    elif isinstance(value, float) and not math.isfinite(value):
        yield "is not a finite number of reasonable size"
    elif isinstance(value, dict):
        for name in value:
            yield from _text_complaints(name, "has a member whose name contains")
    if isinstance(value, Members):
        for name in value.duplicates:
            yield f"has the member {quote(name)} more than once"


def _text_complaints(text: str, verb: str) -> Iterator[str]:
    for bad in sorted(set(UNSTORABLE.findall(text)))[:1] if not text.isascii() or "\x00" in text else ():
        what = "a NUL character" if bad == "\x00" else "a lone surrogate or a byte that is not UTF-8"
        yield f"{verb} {what}"
