"""The two base classes of values: frozen values that cross process borders, and the mutable state of a tree."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A model whose `model_copy` refuses unknown fields."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Raise for an unknown field, which is a bug: pydantic would silently keep it."""
        if update and (strange := update.keys() - type(self).__pydantic_fields__.keys()):
            raise TypeError(f"{type(self).__name__} has no {', '.join(strange)}")
        return super().model_copy(update=update, deep=deep)


class Wire(Value):
    """A frozen value that crosses process borders and outlives releases."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the value itself: it is immutable, so copies of a tree's state can share it."""
        return self


class Memory(Value):
    """A mutable part of a tree's or a run's state. It is not validated on assignment: the reducer is its only writer.

    Its fields are dicts, lists, other `Memory` values, and immutable values.
    """

    model_config = ConfigDict(extra="ignore")

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Copy the mutable parts, and share the immutable ones, which `copy.deepcopy` would examine one by one."""
        copied = self.model_copy()
        for name, value in vars(self).items():
            vars(copied)[name] = _copied(value)
        return copied


def _copied(value: Any) -> Any:
    if isinstance(value, Memory):
        return value.__deepcopy__()
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
