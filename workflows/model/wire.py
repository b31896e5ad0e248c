"""The two kinds of value: frozen ones that cross process borders, and the tree's own memory."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A model whose copies have its own fields and no others."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A field that does not exist is a bug, and raises: pydantic would keep it without a word."""
        if update and (strange := update.keys() - type(self).__pydantic_fields__.keys()):
            raise TypeError(f"{type(self).__name__} has no {', '.join(strange)}")
        return super().model_copy(update=update, deep=deep)


class Wire(Value):
    """A frozen value that crosses process borders and outlives releases."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Memory(Value):
    """Mutable, and not validated on assignment: the reducer is its only writer."""

    model_config = ConfigDict(extra="ignore")
