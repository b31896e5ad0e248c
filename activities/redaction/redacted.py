"""Redaction as the host does it: known forms of secrets, and the values that this process knows (ruling N7)."""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue

from activities.redaction import known_values

T = TypeVar("T")

_MARGIN = 1024
"""What is read beyond a cut, so that a secret which is cut is not taken for something else; half of it is left out."""

_SHORTEST = known_values.SHORTEST - 2
"""Texts below that have no room for a secret."""

_SHORT = 256
"""Texts up to here come again and again: ids, names, states."""


def redacted(text: str) -> str:
    """The text without secrets."""
    if len(text) >= _SHORTEST:
        _look()
    return _clean(text)


def redacted_begin(text: str, limit: int) -> str:
    """The same of the begin of a text, without going through all of it."""
    part = redacted(text[: limit + _MARGIN])
    return (part if len(text) <= limit + _MARGIN else part[: -_MARGIN // 2])[:limit]


def redacted_end(text: str, limit: int) -> str:
    """The same of its end."""
    part = redacted(text[-limit - _MARGIN :])
    return (part if len(text) <= limit + _MARGIN else part[_MARGIN // 2 :])[-limit:]


def redacted_value(value: JsonValue) -> JsonValue:
    """The same for all of a JSON value."""
    from workflows.contract.redact import redact_value

    _look()
    return redact_value(value, _clean)


def redacted_all(value: T) -> T:
    """The same for every text in models, records and what holds them; what has none comes back as it is."""
    _look()
    return mapped(value, _clean)


def mapped(value: T, change: Callable[[str], str]) -> T:
    """The value with every text in it changed; enumerations and names of fields stay."""
    changed: Any = _mapped(value, change)
    return changed  # type: ignore[no-any-return]


def learn(values: Iterable[str]) -> None:
    """From now on these are secrets in this process."""
    if known_values.process().learn(values):
        _remembered.cache_clear()


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if type(value) is str:
        return change(value)
    if isinstance(value, BaseModel):
        told = {name: getattr(value, name) for name in type(value).model_fields}
        new = {name: item for name, old in told.items() if (item := _mapped(old, change)) is not old and item != old}
        return value.model_copy(update=new) if new else value
    if isinstance(value, dict):
        return {_mapped(name, change): _member(name, item, change) for name, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_mapped(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        told = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        new = {name: item for name, old in told.items() if (item := _mapped(old, change)) is not old and item != old}
        return replace(value, **new) if new else value
    return value


def _member(name: object, value: Any, change: Callable[[str], str]) -> Any:
    """A text under a secret's name goes whole."""
    from workflows.contract.secret_names import is_secret

    if type(name) is str and type(value) is str and is_secret(name, value):
        return change(f"{name}={value}").partition("=")[2]
    return _mapped(value, change)


def _look() -> None:
    """Once for a value, however many texts it has: files are asked whether they have changed."""
    if known_values.process().look():
        _remembered.cache_clear()


def _clean(text: str) -> str:
    if len(text) < _SHORTEST:
        return text
    return _remembered(text) if len(text) <= _SHORT else _redact(text)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> str:
    return _redact(text)


def _redact(text: str) -> str:
    from workflows.contract.redact import (
        redact,  # its patterns take milliseconds: not for a command that writes nothing
    )

    return redact(text, known_values.process().find)
