"""Rows that the store refused, reduced until any store accepts them (ruling B6)."""

import math
from enum import Enum
from typing import TypeVar

from pydantic import BaseModel

from workflows.contract.size_limits import MOST_TOKENS

MARK = "[reduced: the store refused it as it was] "
TEXT_LIMIT = 1_000
LABEL_LIMIT = 64
"""The width of the narrowest column for a label, and the length of a digest."""

LABELS = ("model", "effort", "phase", "head_sha", "agent", "result_digest", "kind")
NUMBERS = ("pull_request", "issue")

LARGEST = 2**31 - 1
"""Largest value of the smallest number column."""

M = TypeVar("M", bound=BaseModel)


def reduce_row(row: M) -> M:
    """Reduce all texts and numbers of a row, or of several: texts plain and short, numbers within their columns' range.

    The service's own ids, states and times need no change.
    """
    return row.model_copy(update={name: _value(name, getattr(row, name)) for name in type(row).model_fields})


def _value(name: str, value: object) -> object:
    match value:
        case Enum() | bool():
            return value
        case str():
            return label(value) if name in LABELS else text(value)
        case int() if name in NUMBERS:
            return value if 0 < value <= LARGEST else None
        case int():
            return max(-MOST_TOKENS, min(value, MOST_TOKENS))
        case float():
            return value if math.isfinite(value) else 0.0
        case tuple() | list():
            return type(value)(_value(name, item) for item in value)
        case dict():
            return {label(key): _value(key, item) for key, item in list(value.items())[:LABEL_LIMIT]}
        case BaseModel():
            return reduce_row(value)
        case _:
            return value


def text(value: str) -> str:
    """Return printable ASCII, with a mark if the text was changed."""
    plain = _plain(value)[:TEXT_LIMIT]
    return value if plain == value else f"{MARK}{plain}"[:TEXT_LIMIT]


def label(value: str) -> str:
    """Return printable ASCII of a label's length."""
    return _plain(value)[:LABEL_LIMIT]


def _plain(value: str) -> str:
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in value[: 2 * TEXT_LIMIT])
