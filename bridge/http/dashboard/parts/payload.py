"""A run's payload as a person fills it in: one row for each value, or a single field that takes lines or JSON (ruling
K1).
"""

import re

from bridge.http.dashboard.frame.page import SubmittedForm
from bridge.http.wire import strict_json
from workflows.model.errors import UsageError
from workflows.pipeline.definition import Definition, ShellStage
from workflows.pipeline.payload import MOST_ENTRIES, check_payload

EMPTY_ROWS = 2
_READS = re.compile(r"SERVICE_PAYLOAD_([A-Z][A-Z0-9_]*)")


def keys_read(definition: Definition) -> tuple[str, ...]:
    """Return the payload keys that occur in the definition's commands."""
    commands = (word for stage in definition.stages if isinstance(stage, ShellStage) for word in stage.command)
    names = [name.lower() for word in commands for name in _READS.findall(word)]
    return tuple(dict.fromkeys(names))[: MOST_ENTRIES - EMPTY_ROWS]


def payload_of(form: SubmittedForm) -> dict[str, str]:
    """Return the whole payload, or raise an error with its faults. Rows without a value are skipped."""
    given: list[tuple[str, object]] = []
    for number in range(1, MOST_ENTRIES + 1):
        key, typed = form.text(f"key-{number}", "").strip(), form.text(f"value-{number}", "")
        if typed and not key:
            raise UsageError(f"the value {typed[:60]!r} has no key")
        if typed:
            given.append((key, typed))
    given += _lines(form.text("more", ""))
    payload: dict[str, object] = {}
    for key, value in given:
        if key in payload:
            raise UsageError(f"the payload names {key[:60]!r} twice")
        payload[key] = value
    return check_payload(payload)


def _lines(text: str) -> list[tuple[str, object]]:
    """Parse `KEY=VALUE` lines, or one JSON object."""
    if text.lstrip().startswith("{"):
        value = strict_json.decode(text.strip().encode("utf-8", "surrogatepass"))
        return list(value.items())
    entries: list[tuple[str, object]] = []
    for number, line in enumerate(text.split("\n"), 1):
        key, equals, value = line.partition("=")
        if not equals and line.strip():
            raise UsageError(f"line {number}, {line.strip()[:60]!r}, is not KEY=VALUE")
        if equals:
            entries.append((key.strip(), value))
    return entries
