"""Redaction on a host: known forms of secrets, and the values that this process knows (ruling N7)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum, auto
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from activities.redaction import known_values
from workflows.model.errors import RefusedError

if TYPE_CHECKING:
    from workflows.secrets.spans import Span


T = TypeVar("T")

_MARGIN = 1024
"""Characters read beyond a cut, so that a secret at the cut is recognised; half of them are left out."""

_SHORTEST = known_values.SHORTEST - 2
"""Shorter texts can't contain a secret."""

LONG = 65_536
"""Characters. A worker has longer texts searched in a helper process, never in the event loop's thread."""

LEFT_OUT = "[left out: {} characters could not be searched for secrets: {}]"

_SHORT = 256
"""Texts up to this length are cached, since they repeat: ids, names, states."""


def redact_text(text: str) -> str:
    """Return the text without secrets."""
    if len(text) >= _SHORTEST:
        _look()
    return _clean(text)


def redact_begin(text: str, limit: int) -> str:
    """Return the first `limit` characters of a text, redacted; only that part of the text is searched for secrets."""
    part = redact_text(text[: limit + _MARGIN])
    return (part if len(text) <= limit + _MARGIN else part[: -_MARGIN // 2])[:limit]


def redact_end(text: str, limit: int) -> str:
    """Return the last `limit` characters of a text, redacted; only that part of the text is searched for secrets."""
    part = redact_text(text[-limit - _MARGIN :])
    return (part if len(text) <= limit + _MARGIN else part[_MARGIN // 2 :])[-limit:]


def redact_between(before: str, text: str, after: str) -> str:
    """Return the text without secrets, and without the parts of secrets that begin in `before` or end in `after`."""
    from workflows.secrets.redact import MARK
    from workflows.secrets.spans import replace_spans

    _look()
    begin, end = len(before), len(before) + len(text)
    try:
        spans_ = _spans(before + text + after)
    except RefusedError as fault:
        return LEFT_OUT.format(len(text), fault.message)
    inside = (
        (max(first, begin) - begin, min(last, end) - begin) for first, last in spans_ if first < end and last > begin
    )
    return _clean(replace_spans(text, inside, lambda _: MARK))


def secrets_of(text: str) -> frozenset[str]:
    """Return the secrets in a text."""
    _look()
    return frozenset(text[begin:end] for begin, end in _spans(text))


def redact_all(value: T) -> T:
    """Remove secrets from every text in models, records and collections; a value without secrets is returned as it
    is.
    """
    _look()
    return map_texts(value, _clean)


def is_known_clean(text: str) -> bool:
    """Return whether a text is short enough for the cache, and has no secret."""
    return len(text) <= _SHORT and _clean(text) == text


def map_texts(value: T, change: Callable[[str], str]) -> T:
    """Apply a function to every text in a value; enumerations and names of fields stay."""
    changed: Any = _map(value, change)
    return changed  # type: ignore[no-any-return]


def learn(values: Iterable[str]) -> None:
    """Treat these values as secrets in this process."""
    if known_values.process().learn(values):
        _redact_short.cache_clear()


def _map(value: Any, change: Callable[[str], str]) -> Any:
    kind: Any = type(value)
    if kind is str:
        return change(value)
    shape, names = _shape(kind)
    match shape:
        case _Shape.RECORD:
            new: dict[str, Any] = {}
            for name in names:
                old = getattr(value, name)
                if (item := _map(old, change)) is not old and item != old:
                    new[name] = item
            return _with(value, new) if new else value
        case _Shape.DICT:
            return dict(_members(value, change))
        case _Shape.SERIES:
            return kind(_map(item, change) for item in value)
        case _:
            return value


def _members(value: dict[Any, Any], change: Callable[[str], str]) -> Iterator[tuple[Any, Any]]:
    """Yield changed items of a mapping. A text whose key is a secret's name is removed whole."""
    from workflows.secrets.names import is_secret

    for name, item in value.items():
        if type(name) is str and type(item) is str and is_secret(name, item):
            yield _map(name, change), change(f"{name}={item}").partition("=")[2]
        else:
            yield _map(name, change), _map(item, change)


class _Shape(Enum):
    RECORD = auto()
    """A model or a dataclass."""
    DICT = auto()
    SERIES = auto()
    OTHER = auto()


@cache
def _shape(kind: type) -> tuple[_Shape, tuple[str, ...]]:
    """Return how values of a type hold texts, with a record's fields. Cached, since inspecting a type is slow."""
    if issubclass(kind, BaseModel):
        return _Shape.RECORD, tuple(kind.model_fields)
    if is_dataclass(kind):
        return _Shape.RECORD, tuple(field.name for field in fields(kind) if field.init)
    if issubclass(kind, dict):
        return _Shape.DICT, ()
    return (_Shape.SERIES if kind in (list, tuple, set, frozenset) else _Shape.OTHER), ()


def _with(record: Any, new: dict[str, Any]) -> Any:
    return record.model_copy(update=new) if isinstance(record, BaseModel) else replace(record, **new)


def _look() -> None:
    """Reread the watched secret files that changed, and clear the redaction cache if that added a secret.

    Called once per value, however many texts the value has.
    """
    if known_values.process().look():
        _redact_short.cache_clear()


def _clean(text: str) -> str:
    if len(text) < _SHORTEST:
        return text
    return _redact_short(text) if len(text) <= _SHORT else without_secrets(text)


@lru_cache(maxsize=4096)
def _redact_short(text: str) -> str:
    return without_secrets(text)


def without_secrets(text: str, by: Callable[[str], str] | None = None) -> str:
    """Replace each secret by the result of `by`, or by `[redacted]`. A text that takes too long to search is replaced
    whole (N7).
    """
    from workflows.secrets.redact import redact

    try:
        return redact(text, by=by, search=lambda part, _: _spans(part))
    except RefusedError as fault:
        return LEFT_OUT.format(len(text), fault.message)


def _spans(text: str) -> "list[Span]":
    """Return the spans of secrets. A long text is searched in another process; raise RefusedError at its deadline."""
    known = known_values.process()
    return spans(text, known) if len(text) <= LONG or _apart is None else _apart(text, known)


def spans(text: str, known: known_values.KnownValues) -> "list[Span]":
    """Return the spans of secrets. It depends only on its arguments, so a helper process can call it."""
    from workflows.secrets.redact import secrets_in

    return secrets_in(text, known.find)


class Search(Protocol):
    """A search for secrets in another process. It raises RefusedError at its deadline."""

    def __call__(self, text: str, known: known_values.KnownValues) -> "list[Span]": ...


_apart: Search | None = None


def search_apart(search: Search) -> None:
    """Have long texts of this process searched by `search`, in another process."""
    global _apart
    _apart = search
