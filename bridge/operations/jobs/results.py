"""Checking, describing and rendering results, for every surface (spec: The result object)."""

from typing import Any

from workflows.contract.canonical import canonical
from workflows.contract.locate import KEY
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.contract.prompt_contract import explain_contract, explain_decisions
from workflows.contract.render import render_comment
from workflows.contract.schema import schema
from workflows.contract.size_limits import COUNTS
from workflows.model.event_kinds import EventKind


def check(raw: bytes) -> Accepted | Rejected:
    """Read the result in an agent's output; return it, or all its faults (rulings A1, A4)."""
    return read_result(raw)


def report(reading: Accepted | Rejected) -> dict[str, Any]:
    """Return a check's outcome as JSON."""
    match reading:
        case Accepted():
            events = [notice.model_dump(mode="json") for notice in reading.notices]
            if reading.not_kept:
                events.append({"kind": EventKind.DELEGATION_WIDTH_EXCEEDED.value, "message": too_wide(reading)})
            return {"ok": True, KEY: canonical(reading.result), "events": events}
        case Rejected():
            return {"ok": False, "faults": [{"path": fault.path, "message": fault.message} for fault in reading.faults]}


def too_wide(reading: Accepted) -> str:
    """Return a sentence on the delegations that are cut because a result has too many (ruling C1)."""
    most = COUNTS["delegations"]
    return f"{reading.not_kept:,} delegations are more than the {most} a result may have: a task dispatches none"


def result_schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return schema()


def explain() -> str:
    """Return the text that explains the result object to agents."""
    return f"{explain_contract()}\n{explain_decisions()}"


def render(raw: bytes) -> str | Rejected:
    """Return the GitHub comment that a result would be posted as."""
    reading = read_result(raw)
    return reading if isinstance(reading, Rejected) else render_comment(reading.result)
