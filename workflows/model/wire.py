"""The two kinds of value: frozen ones that cross process borders, and the tree's own memory."""

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """A frozen value that crosses process borders and outlives releases."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Memory(BaseModel):
    """Mutable, and not validated on assignment: the reducer is its only writer."""

    model_config = ConfigDict(extra="ignore")
