"""Answers of tools: one value as structured content and as text, small enough for every client (ruling S2).

The text begins with what matters: clients cut long answers, some after 6 KB.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workflows.text.invisible import one_line, prefix_lines, visible

MOST_BYTES = 20_000
"""The maximum size of an answer's text."""

LONGEST = 14_000
"""The maximum size of a text that a tool is asked for."""

SHORT = 1_000
"""The maximum size of a text beside others."""

Answer = Mapping[str, Any]


class Quote(str):
    """Text that an agent or a person wrote: fenced, so that none of its lines passes for the service's own."""


def shorten(text: str, most: int, rest: str) -> str:
    """Return the head and the tail of a long text, with the number of bytes left out and where they are."""
    content = text.encode()
    if len(content) <= most:
        return text
    head, tail = content[: most * 2 // 3], content[-most // 3 :]
    left_out = f"[{len(content) - len(head) - len(tail):,} bytes left out; all: {rest}]"
    return f"{head.decode(errors='ignore')}\n{left_out}\n{tail.decode(errors='ignore')}"


def as_text(answer: Answer) -> str:
    """Return the answer as lines of `name: value`."""
    return "\n".join(_lines(answer, ""))


def as_json(value: Any) -> Any:
    """Return the answer's structured form, with invisible characters escaped."""
    match value:
        case str():
            return visible(value)
        case Mapping():
            return {name: as_json(item) for name, item in value.items()}
        case Sequence():
            return [as_json(item) for item in value]
        case _:
            return value


def without_empty(answer: Answer) -> dict[str, Any]:
    """Return the answer without the fields that hold nothing."""
    return {name: value for name, value in answer.items() if value not in (None, "", [], {}, ())}


def _lines(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, content in value.items():
        match content:
            case Quote():
                yield f"{indent}{name}:"
                yield from (f"{indent}{line}" for line in prefix_lines(content))
            case Mapping():
                yield f"{indent}{name}:"
                yield from _lines(content, f"{indent}  ")
            case list() | tuple():
                yield f"{indent}{name}:"
                for item in content:
                    if isinstance(item, Mapping):
                        first, *rest = _lines(item, f"{indent}  ")
                        yield f"{indent}- {first.strip()}"
                        yield from rest
                    else:
                        yield f"{indent}- {one_line(str(item))}"
            case _:
                yield f"{indent}{name}: {one_line(str(content))}"
