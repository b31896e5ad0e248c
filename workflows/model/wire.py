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
    """A mutable value that is not validated on assignment: the reducer is its only writer."""

    model_config = ConfigDict(extra="ignore")
