"""Text that every store accepts: characters that no database accepts are replaced (ruling B6)."""

import re
from typing import TypeVar

from pydantic import BaseModel, JsonValue

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no database accepts: NUL and surrogates."""


def storable(text: str) -> str:
    """Replace the characters that no database accepts."""
    return text if text.isascii() and "\x00" not in text else UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def short_line(text: str, limit: int = 80) -> str:
    """Turn a text into one short, storable line that can be quoted in a sentence."""
    return " ".join(storable(text).split())[:limit]


def storable_value(value: JsonValue) -> JsonValue:
    """Make every text of a JSON value storable, member names included."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_value(item) for item in value]
        case dict():
            return {storable(name): storable_value(item) for name, item in value.items()}
        case _:
            return value


Model = TypeVar("Model", bound=BaseModel)


def storable_model(model: Model) -> Model:
    """Make every text of a model storable."""
    dumped = model.model_dump(mode="python")
    return type(model).model_validate(_storable_tree(dumped))


def _storable_tree(value: object) -> object:
    match value:
        case str():
            return storable(str(value))
        case list() | tuple():
            return [_storable_tree(item) for item in value]
        case dict():
            return {_storable_tree(name): _storable_tree(item) for name, item in value.items()}
        case _:
            return value
