"""The entries of the narrative and evidence fields (ruling A6)."""

from pydantic import JsonValue

from workflows.contract.examples import PLACEHOLDERS
from workflows.contract.scope import Scope, kind

KNOWN_KEYS = ("path", "command", "summary", "result", "exit_code")
"""The usual keys of an evidence entry; others are kept too."""


def read_findings(scope: Scope) -> list[JsonValue]:
    """Read free-form strings and objects; an array is kept too, and shown as JSON (spec: findings rendering)."""
    entries = scope.array("findings", "strings or objects")
    for index, entry in enumerate(entries):
        if not isinstance(entry, str | dict | list):
            scope.fault(f"findings[{index}]", f"must be a string or an object, not {kind(entry)}")
    return entries


def read_evidence(scope: Scope, name: str) -> list[JsonValue]:
    """Read strings, or objects with at least one string that is not blank. Ruling A6."""
    entries = scope.array(name, "strings or objects")
    for index, entry in enumerate(entries):
        place = f"{name}[{index}]"
        if not isinstance(entry, str | dict):
            scope.fault(place, f"must be a string or an object, not {kind(entry)}")
        elif isinstance(entry, str) and not entry.strip():
            scope.fault(place, "must not be blank")
        elif isinstance(entry, dict) and not any(isinstance(each, str) and each.strip() for each in entry.values()):
            scope.fault(place, f"must have at least one string value, such as {' or '.join(KNOWN_KEYS[:3])}")
        else:
            texts = entry.values() if isinstance(entry, dict) else (entry,)
            for left in (each for each in texts if isinstance(each, str) and each in PLACEHOLDERS):
                scope.placeholder(place, left)
    return entries
