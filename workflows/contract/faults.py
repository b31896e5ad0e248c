"""Faults of a result: error and place, one line each (ruling A4).

Paths begin inside `service_result`: member names joined by dots, array positions in brackets (`summary`,
`delegations[2].ephemeral.runtime`, `findings[0].title`). A name that is not an identifier is written as a JSON string
in brackets. The path of the whole result is empty.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

from pydantic import JsonValue

from workflows.text.plurals import quantity

MOST = 500
"""Faults beyond this number are counted, not listed: no repair reads them, and a hostile output may hold millions."""

SHOWN = 20
"""Faults shown to people; further ones are counted."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `message` is a complete line."""

    path: str
    message: str
    unknown_key: bool = False
    """Ruling A3: after the repair, faults of this kind alone do not refuse a result."""


@dataclass(slots=True)
class Faults:
    """The faults of one result, in the order they are found."""

    listed: list[Fault] = field(default_factory=list)
    beyond: int = 0

    def add(self, fault: Fault) -> None:
        if len(self.listed) < MOST:
            self.listed.append(fault)
        else:
            self.beyond += 1

    def __bool__(self) -> bool:
        return bool(self.listed)

    def report(self) -> tuple[Fault, ...]:
        """Return all faults; the last one counts those that are not listed."""
        more = (Fault("", f"and {quantity(self.beyond, 'more fault')} of the same result"),) if self.beyond else ()
        return (*self.listed, *more)


def first(sentences: Sequence[str], total: int | None = None) -> list[str]:
    """Return the first sentences, and a note on how many more there are. `total` is the count of all if the caller
    passes only some.
    """
    more = (len(sentences) if total is None else total) - SHOWN
    return [*sentences[:SHOWN], *([f"and {more:,} more"] if more > 0 else [])]


def lines(faults: Iterable[Fault]) -> str:
    """Join the faults for people and agents: one per line."""
    return "\n".join(fault.message for fault in faults)


def member(path: str, name: str) -> str:
    """Return the path of a member of the object at `path`."""
    if not _PLAIN_NAME.fullmatch(name):
        return f"{path}[{quote(name)}]"
    return f"{path}.{name}" if path else name


def quote(value: JsonValue, cap: int = 80) -> str:
    """Quote a value for a fault's line: one line, printable, short."""
    head = value[: cap + 1] if isinstance(value, str) else value
    text = json.dumps(head) if not isinstance(head, list | dict) else ("[...]" if isinstance(head, list) else "{...}")
    return text if len(text) <= cap + 2 else f'{text[:cap]}..."'


CLOSE = 0.66
"""The similarity of names that count as close."""

MEANT = {
    "done": "implemented",
    "completed": "implemented",
    "complete": "implemented",
    "success": "implemented",
    "succeeded": "implemented",
    "fixed": "implemented",
    "lgtm": "approved",
    "ok": "approved",
    "passed": "approved",
    "accepted": "approved",
    "answered": "approved",
    "request_changes": "changes_requested",
    "rejected": "changes_requested",
    "needs_work": "changes_requested",
    "error": "failed",
    "cannot_proceed": "blocked",
    "needs_input": "blocked",
    "n/a": "skipped",
    "status": "decision",
    "verdict": "decision",
    "outcome": "decision",
    "message": "summary",
    "description": "summary",
    "files_changed": "changes_made",
    "changes": "changes_made",
    "modified_files": "changes_made",
    "tests": "tests_run",
    "questions": "human_questions",
    "subtasks": "delegations",
    "children": "delegations",
    "tasks": "delegations",
    "instructions": "prompt",
    "task": "prompt",
    "question": "prompt",
    "options": "choices",
    "depends_on": "deps",
    "dependencies": "deps",
    "name": "agent",
    "codex": "runtime_a",
    "claude": "runtime_b",
    "kimi": "runtime_c",
}
"""Synonyms of known names that are spelt differently: each word that writers use, and the name they mean."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar, ignoring case, or that `MEANT` gives as its synonym. Only the first
    hundred names are compared.
    """
    folded = {word.casefold(): word for word in islice(known, 100)}
    if meant := folded.get(MEANT.get(name[:64].casefold().replace("-", "_").replace(" ", "_"), "")):
        return meant
    close = get_close_matches(name[:64].casefold(), list(folded), n=1, cutoff=CLOSE)
    return folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?` if a known name is close, else ""."""
    near = nearest(name, known)
    return f'; did you mean "{near}"?' if near else ""
