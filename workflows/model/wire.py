"""The two bases of values: frozen ones that cross process borders, and the tree's own memory."""

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
        """Return the value itself: nothing changes it, so a copy of a tree's memory shares it."""
        return self


class Memory(Value):
    """A mutable value that is not validated on assignment: the reducer is its only writer.

    It holds dicts, lists, values of its kind, and what nothing changes.
    """

    model_config = ConfigDict(extra="ignore")

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Copy what can change, and share the rest, about which `copy` would ask piece by piece."""
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
