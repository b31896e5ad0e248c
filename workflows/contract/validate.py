"""Validation of a candidate: every fault at once, in the order of the spec's fields (rulings A3, A4, A6 to A10)."""

from dataclasses import dataclass
from itertools import islice
from typing import cast

from pydantic import JsonValue

from workflows.contract.delegations import Siblings, entry_scope, read_delegation, read_id
from workflows.contract.examples import PLACEHOLDERS
from workflows.contract.faults import Fault, Faults, quote
from workflows.contract.graph import cycles
from workflows.contract.locate import KEY, Members
from workflows.contract.models import Decision, HumanQuestion, ServiceResult
from workflows.contract.size_limits import COUNTS, DELEGATIONS_BYTES, QUESTIONS_BYTES, size, too_many
from workflows.contract.strict_reader import Clean, Object, Scope, kind, set_only

_MOST_CYCLES = 20


@dataclass(frozen=True, slots=True)
class Validation:
    """The faults of a candidate, and its result if its only faults are unknown keys."""

    faults: tuple[Fault, ...]
    result: ServiceResult | None
    not_kept: int = 0
    """The number of delegations in a result that had too many: the result is returned without them (ruling C1). 0 for
    all others.
    """


def validate(candidate: Object) -> Validation:
    """Check an object that has the key `service_result` (ruling A4)."""
    faults = Faults()
    body = candidate.get(KEY)
    clean: Clean = {}
    if isinstance(body, dict):
        scope = Scope(body, faults)
        clean = {} if _is_wrapped(scope) else _read_result(scope)
    else:
        faults.add(Fault("", f"{KEY} must be an object, not {kind(body)}"))
    _check_wrapper(candidate, faults)
    usable = all(fault.unknown_key for fault in faults.listed)
    count = len(legs) if isinstance(body, dict) and isinstance(legs := body.get("delegations"), list) else 0
    not_kept = count if too_many("delegations", count) else 0
    return Validation(faults.report(), ServiceResult.model_validate(clean) if usable else None, not_kept)


def _read_result(scope: Scope) -> Clean:
    clean: Clean = {
        "decision": scope.choice("decision", Decision, required=True),
        "summary": scope.text("summary", required=True),
        "findings": read_findings(scope),
        "changes_made": read_evidence(scope, "changes_made"),
        "tests_run": read_evidence(scope, "tests_run"),
        "needs": read_evidence(scope, "needs"),
        "delegations": _read_delegations(scope),
        "artifact_body": _read_artifact_body(scope),
        "human_questions": _read_questions(scope),
    }
    scope.close(ServiceResult.model_fields)
    return set_only(clean)


def _read_delegations(scope: Scope) -> list[Clean]:
    """Read the delegations. If there are too many, read none: the tree refuses such a result for its width (rulings B6,
    C1).
    """
    entries = scope.entries("delegations", "objects", scope.source.get("delegations"))
    if entries and scope.source.get("decision") == Decision.SKIPPED:
        scope.fault("delegations", "must be empty when decision is skipped")
    if too_many("delegations", len(entries)):
        return []
    siblings = Siblings.of("delegations", entries)
    scopes = (entry_scope(siblings, index, entry, scope.faults) for index, entry in enumerate(entries))
    read = [read_delegation(inner, siblings, index) for index, inner in enumerate(scopes) if inner is not None]
    deps = {cast("str", leg["id"]): cast("list[str]", leg["deps"]) for leg in read if "id" in leg}
    for cycle in islice(cycles(deps), _MOST_CYCLES):
        scope.fault("delegations", f"have a cycle in deps: {' -> '.join(cycle)}")
    if (whole := sum(map(_travelling_size, entries))) > DELEGATIONS_BYTES:
        scope.fault("delegations", _together(whole, DELEGATIONS_BYTES, "beside their prompts"))
    return read


def _travelling_size(entry: JsonValue) -> int:
    """Return the bytes that a delegation takes in a history, without its prompt."""
    return size({name: value for name, value in entry.items() if name != "prompt"}) if isinstance(entry, dict) else 0


def _together(whole: int, most: int, what: str) -> str:
    return f"must be at most {most:,} bytes together, {what}, not {whole:,}"


def _read_artifact_body(scope: Scope) -> JsonValue:
    """Read a string or any JSON value; blank counts as not set (ruling A6)."""
    body = scope.take("artifact_body")
    if not scope.is_set("artifact_body"):
        body, legs = None, scope.source.get("delegations")
        entries = enumerate(legs) if isinstance(legs, list) else ()
        users = [f"delegations[{i}]" for i, entry in entries if isinstance(entry, dict) and entry.get("artifacts")]
        if users:
            more = f" and {len(users) - 3} more" if len(users) > 3 else ""
            scope.fault("artifact_body", f"is required, because {', '.join(users[:3])}{more} set artifacts")
    return body


def _read_questions(scope: Scope) -> list[Clean]:
    entries = scope.entries("human_questions", "objects", scope.source.get("human_questions"))
    if sentence := too_many("human_questions", len(entries)):
        scope.fault("human_questions", sentence)
    if (whole := sum(map(size, entries))) > QUESTIONS_BYTES:
        scope.fault("human_questions", _together(whole, QUESTIONS_BYTES, "choices included"))
    siblings = Siblings.of("human_questions", entries)
    looked_at = enumerate(entries[: COUNTS[siblings.name]])
    scopes = (entry_scope(siblings, index, entry, scope.faults) for index, entry in looked_at)
    return [_read_question(inner, siblings, index) for index, inner in enumerate(scopes) if inner is not None]


def _read_question(scope: Scope, siblings: Siblings, index: int) -> Clean:
    clean: Clean = {
        "id": read_id(scope, siblings, index),
        "prompt": scope.text("prompt", required=True, of="question"),
        "choices": scope.strings("choices", of="choice"),
    }
    scope.close(HumanQuestion.model_fields)
    return clean


def _is_wrapped(scope: Scope) -> bool:
    """Return whether the result's members stand one level too deep; if so, note only that fault."""
    if scope.is_set("decision") or scope.is_set("summary"):
        return False
    unknown = ((name, inner) for name, inner in scope.source.items() if name not in ServiceResult.model_fields)
    inside = [name for name, inner in unknown if isinstance(inner, dict) and isinstance(inner.get("decision"), str)]
    for name in inside[:1]:
        scope.faults.add(Fault("", f"the result is wrapped in {quote(name)}: put what is in it directly into {KEY}"))
    return bool(inside)


def _check_wrapper(candidate: Object, faults: Faults) -> None:
    for name in candidate:
        if name != KEY:
            inside = ": put it inside" if name in ServiceResult.model_fields else ""
            faults.add(Fault("", f"unknown key {quote(name)} beside {KEY}{inside}", unknown_key=True))
    if isinstance(candidate, Members) and KEY in candidate.duplicates:
        faults.add(Fault("", f"{KEY} is given more than once in one object"))


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
    """Read strings, or objects with at least one string that is not blank (ruling A6)."""
    entries = scope.array(name, "strings or objects")
    for index, entry in enumerate(entries):
        place = f"{name}[{index}]"
        if not isinstance(entry, str | dict):
            scope.fault(place, f"must be a string or an object, not {kind(entry)}")
        elif isinstance(entry, str) and not entry.strip():
            scope.fault(place, "must not be blank")
        elif isinstance(entry, dict) and not any(isinstance(text, str) and text.strip() for text in entry.values()):
            scope.fault(place, f"must have at least one string value, such as {' or '.join(KNOWN_KEYS[:3])}")
        else:
            texts = entry.values() if isinstance(entry, dict) else (entry,)
            for left in (text for text in texts if isinstance(text, str) and text in PLACEHOLDERS):
                scope.placeholder(place, left)
    return entries
