"""How values are printed: JSON for programs, aligned columns for people."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, colours, or turns the direction of what follows: agents wrote part of what is shown."""


def say(text: str = "") -> None:
    """Lines to the person."""
    sys.stdout.write(plain(text) + "\n")


def plain(text: str) -> str:
    """The text without the control characters that could rewrite the screen."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def say_json(value: Any) -> None:
    """One JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def say_table(headings: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> None:
    """Aligned columns, or a sentence where there is nothing to show."""
    table = [list(headings), *(list(row) for row in rows)]
    if len(table) == 1:
        say(empty)
        return
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    for row in table:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def say_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Name and value, one per line; empty values are left out."""
    shown = [(name, str(value)) for name, value in fields if value not in (None, "", (), [])]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        say(f"{name.ljust(width)}  {value.replace(chr(10), chr(10) + ' ' * (width + 2))}")
