"""The base class of all event payloads: exactly these keys, of exactly these types."""

from pydantic import BaseModel, ConfigDict

Data = dict[str, str | int | float | bool | list[str] | None]


class Payload(BaseModel):
    """Exactly these keys, of exactly these kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
