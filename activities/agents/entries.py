"""The entries of a transcript: what an agent said and did, as its program's output records it.

Each adapter's `entries` turns one record of its program's output into entries. It doesn't know the earlier records.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from activities.agents.streams import Record, text_of
from workflows.model.spend import Usage

ARGUMENT_LIMIT = 300
"""Characters of a tool's argument that are shown."""

_LOOKED_AT = 8192
"""Characters of an entry that are read: enough that redaction sees each secret whole."""

MOST_FILES = 100
"""Files that one entry names."""

_TELLING = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url", "description", "prompt")
"""Names of arguments that describe a call best, the best first."""

_FILE = ("file_path", "path", "notebook_path")


class EntryKind(StrEnum):
    """The kinds of entries."""

    SAID = "said"
    THOUGHT = "thought"
    TOOL = "tool"
    """A call of a tool."""
    RESULT = "result"
    """The result of a tool's call."""
    FILES = "files"
    """Files changed by the agent's program itself, without a call of a tool."""
    PRINTED = "printed"
    """Plain text, such as the output of a shell agent."""
    USAGE = "usage"
    NOTE = "note"
    """A message of the program or of the service."""


class Entry(BaseModel):
    """One thing that an agent said or did."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)

    kind: EntryKind
    at: int = Field(default=0, description="Offset in bytes of its line in the output of the attempt.")
    written_at: float | None = Field(default=None, description="When its line was written, to about two seconds.")
    text: str = Field(default="", description="What was said, thought or printed; the result of a call; a message.")
    left_out: int = Field(default=0, description="Characters left out in the middle of `text`.")
    tool: str = ""
    argument: str = Field(default="", description="The argument of a tool's call, on one line.")
    call: str = Field(default="", description="The id that a tool's call shares with its result.")
    files: tuple[str, ...] = Field(default=(), description="Files that the call or the program changed.")
    failed: bool = False
    inner: bool = Field(default=False, description="True for entries of a sub-agent.")
    usage: Usage | None = None


Read = Callable[[Record], Iterator[Entry] | None]
"""Turns one record of a program's output into entries; None if its line is plain text."""


def text_entry(text: object, kind: EntryKind = EntryKind.SAID, *, inner: bool = False) -> Iterator[Entry]:
    """Yield an entry, unless the text is blank or not a string."""
    if isinstance(text, str) and text.strip():
        yield Entry(kind=kind, text=text.strip("\n"), inner=inner)


def note_entry(text: str, *, failed: bool = False) -> Iterator[Entry]:
    """Yield a message of the program, unless it is blank."""
    if text.strip():
        yield Entry(kind=EntryKind.NOTE, text=text, failed=failed)


def tool(name: str, arguments: object, call: str, *, writers: tuple[str, ...] = (), inner: bool = False) -> Entry:
    """Return the entry of a tool's call. If `writers` has the tool, the entry lists the file among the arguments as
    changed.
    """
    given = arguments if isinstance(arguments, dict) else {}
    path = next((value for key in _FILE if (value := text_of(given, key))), "")
    files = (path,) if path and name in writers else ()
    return Entry(
        kind=EntryKind.TOOL, tool=name or "tool", argument=argument_of(arguments), call=call, files=files, inner=inner
    )


def argument_of(arguments: object) -> str:
    """Return a call's main argument on one line, or all arguments if the main one is unknown."""
    if isinstance(arguments, Mapping):
        telling = next((value for key in _TELLING if (value := text_of(arguments, key))), None)
        arguments = telling or (json.dumps(arguments, ensure_ascii=False) if arguments else "")
    return " ".join(str(arguments)[:_LOOKED_AT].split()) if arguments is not None else ""


def content_of(value: object) -> str:
    """Return the text of a tool's result: a text, or a list of blocks with texts."""
    if isinstance(value, list):
        return "\n".join(text_of(block, "text") or f"[{text_of(block, 'type') or 'block'}]" for block in value)
    return value if isinstance(value, str) else ""
