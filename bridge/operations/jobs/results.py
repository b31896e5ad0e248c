"""Checking, describing and showing a result: what every surface offers of the contract (spec: The result object)."""

from typing import Any

from workflows.contract.canonical import canonical
from workflows.contract.explain import explain_contract
from workflows.contract.locate import KEY
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.contract.render import render_comment
from workflows.contract.schema import schema as contract_schema
from workflows.contract.size_limits import COUNTS
from workflows.model.event_kinds import EventKind


def check(raw: bytes) -> Accepted | Rejected:
    """The result in an agent's output, or everything that is wrong with it. Rulings A1, A4."""
    return read_result(raw)


def report(reading: Accepted | Rejected) -> dict[str, Any]:
    """A check's outcome for programs."""
    match reading:
        case Accepted():
            events = [notice.model_dump(mode="json") for notice in reading.notices]
            if reading.not_kept:
                events.append({"kind": EventKind.DELEGATION_WIDTH_EXCEEDED.value, "message": too_wide(reading)})
            return {"ok": True, KEY: canonical(reading.result), "events": events}
        case Rejected():
            return {"ok": False, "faults": [{"path": fault.path, "message": fault.message} for fault in reading.faults]}


def too_wide(reading: Accepted) -> str:
    """What becomes of a result with more delegations than one may have (ruling C1)."""
    most = COUNTS["delegations"]
    return f"{reading.not_kept:,} delegations are more than the {most} a result may have: a tree dispatches none"


def schema() -> dict[str, Any]:
    """The JSON Schema of the whole object."""
    return contract_schema()


def explain() -> str:
    """The contract as agents are told it."""
    return explain_contract()


def render(raw: bytes) -> str | Rejected:
    """The comment a result would be posted as."""
    reading = read_result(raw)
    return reading if isinstance(reading, Rejected) else render_comment(reading.result)
