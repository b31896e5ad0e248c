"""The bounds of every text and array in one table (ruling B6).

A bound counts characters, as people and columns do, and bytes as the text travels: in UTF-8, as JSON writes it. So the
sizes of histories, rows and search attributes follow from this table. The validator, the schema for agents and callers,
registration, and the widths of the store's columns use this table.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from workflows.contract.storable import storable

ENDLESS = 10**12
"""The size that `size` returns for values nested too deeply to serialise."""

MOST_TOKENS = 10**15
"""More than any program uses, and small enough that sums fit a column."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits of a text."""

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
"""Limit of all questions of one result, choices included: every leg of a tree may ask at once."""

DELEGATIONS_BYTES = 131_072
"""Limit of all delegations of one result without their prompts, which may travel by digest."""


def size(value: JsonValue) -> int:
    """Return the bytes a value takes in a history."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ENDLESS
    return len(text.encode("utf-8", "surrogatepass"))


def too_long(name: str, text: str) -> str | None:
    """Return what completes the sentence "<field> ..." if the text exceeds its bound, else None."""
    bound = BOUNDS[name]
    if len(text) > bound.characters:
        return f"must be at most {bound.characters:,} characters, not {len(text):,}"
    if len(text) * 6 > bound.bytes and (length := size(text) - 2) > bound.bytes:
        return f"must be at most {bound.bytes:,} bytes, not {length:,}"
    return None


def too_many(name: str, count: int) -> str | None:
    """Return what completes the sentence "<field> ..." if there are too many entries, else None."""
    most = COUNTS[name]
    return f"must have at most {most} entries, not {count:,}" if count > most else None


def cut_to_bound(name: str, text: str) -> str:
    """Make a text storable, and cut it between characters to its named bound."""
    return cut_to(text, BOUNDS[name])


def cut_to(text: str, bound: Bound) -> str:
    """Make a text storable, and cut it between characters to a bound."""
    text = storable(text[: bound.characters])
    while (over := size(text) - 2 - bound.bytes) > 0:
        text = text[: -max(1, over // 6)]
    return text
