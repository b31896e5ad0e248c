"""The base class of all event payloads."""

from pydantic import BaseModel, ConfigDict

Data = dict[str, str | int | float | bool | list[str] | None]


class Payload(BaseModel):
    """A payload with exactly its declared keys and types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
