"""Checking, describing and rendering results, for every surface (spec: The result object)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workflows.contract.canonical import canonical
from workflows.contract.explain import explain_contract, explain_decisions
from workflows.contract.locate import KEY
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.contract.render import render_comment
from workflows.contract.schema import schema as contract_schema
from workflows.contract.size_limits import COUNTS
from workflows.model.event_kinds import EventKind

_WHY_NOT = {
    "basename": "only a file name, which fits {file}",
    "none": "not in the diff",
    "unknown": "the diff was not captured whole",
}


@dataclass(frozen=True)
class Claim:
    """A claimed change. A path in the diff does not prove what the text says of it."""

    text: str
    grade: str
    evidence: str
    """The change of each path that the claim names, according to the diff."""

    @property
    def observed(self) -> bool:
        return self.grade == "observed"


def check(raw: bytes) -> Accepted | Rejected:
    """Read the result in an agent's output; return it, or all its faults. Rulings A1, A4."""
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
    """Return a sentence on what is cut from a result with too many delegations (ruling C1)."""
    most = COUNTS["delegations"]
    return f"{reading.not_kept:,} delegations are more than the {most} a result may have: a tree dispatches none"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return contract_schema()


def explain() -> str:
    """Return the contract's text for agents."""
    return f"{explain_contract()}\n{explain_decisions()}"


def render(raw: bytes) -> str | Rejected:
    """Return the GitHub comment that a result would be posted as."""
    reading = read_result(raw)
    return reading if isinstance(reading, Rejected) else render_comment(reading.result)


def claims(changes: Sequence[str], seen: dict[str, Any]) -> list[Claim]:
    """Return each claim with its evidence."""
    graded = {claim["index"]: claim for claim in seen["claims"]}
    return [_claim(change, graded.get(index)) for index, change in enumerate(changes)]


def _claim(change: str, graded: dict[str, Any] | None) -> Claim:
    if graded is None:
        return Claim(change, "reported", "it was not checked")
    return Claim(change, graded["grade"], "; ".join(map(_path, graded["paths"])) or "it names no path")


def _path(binding: dict[str, Any]) -> str:
    if binding["bound"] == "exact":
        return f"{binding['claimed']} is in the diff"
    return f"{binding['claimed']}: {_WHY_NOT[binding['bound']].format(file=binding['file'])}"


def in_sum(seen: dict[str, Any]) -> str:
    """Summarize in a sentence how many claims the diff confirms."""
    if not seen["captured"]:
        return "nothing; the worktree could not be read, so every claim is only reported"
    graded = seen["claims"]
    if seen["complete"] and not seen["touched_files"]:
        return f"it changed nothing{', whatever it claims' if graded else ''}"
    observed = sum(claim["grade"] == "observed" for claim in graded)
    parts = [
        f"{observed} of {len(graded)} claims are in the diff of {len(seen['touched_files'])} file(s)",
        f"{len(seen['claimed_only'])} claimed path(s) are not" if seen["claimed_only"] else "",
        f"{len(seen['unclaimed_files'])} file(s) changed without a claim" if seen["unclaimed_files"] else "",
        "" if seen["complete"] else "there were more files than are kept",
    ]
    return ", ".join(part for part in parts if part)


def entry(entry: Any) -> str:
    """Format an entry of one of the result's lists, a text or an object, as one line."""
    if isinstance(entry, dict):
        return ", ".join(f"{key}: {value}" for key, value in entry.items())
    return str(entry)
