"""How long every text may be and how many of each: the one table (ruling B6), and what makes a text storable.

A bound counts characters, as people and columns do, and bytes as the text travels: in UTF-8, as JSON writes it. So the
sizes of histories, rows and search attributes follow from this table. It is asked by the validator, by the schema that
agents and callers are shown, by registration, and by the widths of the store's columns.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, JsonValue

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""What no database takes: NUL, and surrogates, which are no characters."""

ENDLESS = 10**12
"""The size of what is nested too deeply to be written."""

MOST_TOKENS = 10**15
"""More than any program uses, and few enough that sums of it fit a column."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The longest a text may be."""

    characters: int
    bytes: int


BOUNDS: Mapping[str, Bound] = {
    "id": Bound(64, 64),
    "agent": Bound(64, 256),
    "role": Bound(200, 400),
    "phase": Bound(200, 400),
    "model": Bound(200, 400),
    "effort": Bound(64, 256),
    "template": Bound(64, 256),
    "capability": Bound(64, 256),
    "worktree": Bound(200, 200),
    "artifact": Bound(200, 400),
    "fingerprint": Bound(200, 400),
    "timeout": Bound(64, 64),
    "prompt": Bound(1_048_576, 1_048_576),
    "question": Bound(2_000, 4_000),
    "choice": Bound(200, 400),
    "repo": Bound(200, 200),
    "title": Bound(80, 320),
    "actor": Bound(80, 320),
    "author": Bound(200, 400),
    "label": Bound(200, 400),
    "session": Bound(200, 200),
    "request": Bound(200, 400),
    "reason": Bound(300, 600),
    "summary": Bound(800, 1_600),
    "findings": Bound(4_000, 4_000),
    "agent_template": Bound(16_000, 16_000),
    "agent_command": Bound(4_000, 4_000),
}

COUNTS: Mapping[str, int] = {
    "delegations": 256,
    "human_questions": 10,
    "choices": 20,
    "capabilities": 16,
    "artifacts": 16,
}

QUESTIONS_BYTES = 4_000
"""What the questions of one result may take together, choices included: every leg of a tree may ask at once."""

DELEGATIONS_BYTES = 131_072
"""What the delegations of one result may take together beside their prompts, which need not travel."""


def size(value: JsonValue) -> int:
    """The bytes a value takes in a history."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ENDLESS
    return len(text.encode("utf-8", "surrogatepass"))


def too_long(name: str, text: str) -> str | None:
    """The rest of the sentence "<field> ..." when the text is over its bound."""
    bound = BOUNDS[name]
    if len(text) > bound.characters:
        return f"must be at most {bound.characters:,} characters, not {len(text):,}"
    if len(text) * 6 > bound.bytes and (length := size(text) - 2) > bound.bytes:
        return f"must be at most {bound.bytes:,} bytes, not {length:,}"
    return None


def too_many(name: str, count: int) -> str | None:
    """The rest of the sentence "<field> ..." when there are more entries than may be."""
    most = COUNTS[name]
    return f"must have at most {most} entries, not {count:,}" if count > most else None


def storable(text: str) -> str:
    """The text with what no database takes replaced; everything else as it was."""
    return text if text.isascii() and "\x00" not in text else UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def fitted(name: str, text: str) -> str:
    """Storable, and cut on a character to what its bound allows."""
    return cut_to(text, BOUNDS[name])


def cut_to(text: str, bound: Bound) -> str:
    """The same for a bound that follows from what else there is."""
    text = storable(text[: bound.characters])
    while (over := size(text) - 2 - bound.bytes) > 0:
        text = text[: -max(1, over // 6)]
    return text


def storable_value(value: JsonValue) -> JsonValue:
    """The same for every text of a JSON value, names of members included."""
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
    """The same for every text of a model."""
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
