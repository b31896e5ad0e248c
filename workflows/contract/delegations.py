"""Validation of a result's delegations, entry by entry (spec: Delegation object)."""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from workflows.contract.faults import Fault, Faults, did_you_mean, quote
from workflows.contract.models import (
    WRITE_POLICIES,
    Action,
    AutonomyPolicy,
    Delegation,
    Ephemeral,
    FailurePolicy,
    Runtime,
    ServiceResult,
    SynthesisRule,
)
from workflows.contract.strict_reader import Clean, Scope, kind, set_only
from workflows.contract.worktree_names import merged_leg, worktree_fault
from workflows.text.durations import DurationError, parse_duration


def read_ephemeral(scope: Scope, *, implements: bool) -> Clean:
    """Read the worker as clean members; one that implements must be allowed to write (spec: Ephemeral worker, rule
    1).
    """
    clean: Clean = {"runtime": scope.choice("runtime", Runtime, required=True)}
    for name in ("model", "effort", "template", "role"):
        clean[name] = scope.text(name, of=name)
    capabilities = scope.strings("capabilities", of="capability")
    clean["capabilities"] = capabilities
    policy = scope.choice("autonomy_policy", AutonomyPolicy)
    clean["autonomy_policy"] = policy
    implements = implements or any(name.strip().lower() == Action.IMPLEMENT for name in capabilities)
    if implements and policy not in WRITE_POLICIES and (policy or not scope.is_set("autonomy_policy")):
        given = f"not {policy}" if policy else "and is not set"
        allowed = " or ".join(sorted(WRITE_POLICIES, reverse=True))
        scope.fault("autonomy_policy", f"must be {allowed} for a worker that implements, {given}")
    scope.close(Ephemeral.model_fields, Delegation.model_fields)
    return set_only(clean)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ID_RULE = 'must be 1 to 64 letters, digits, ".", "_" or "-", beginning with a letter or digit'
_ARTIFACT_PART = re.compile(r"[^\x00-\x1f\x7f\\.~-][^\x00-\x1f\x7f\\]*")


@dataclass(frozen=True, slots=True)
class Siblings:
    """The ids of a result's delegations, the index where each id first occurs, and how many delegations run. The
    validation of each delegation needs them.
    """

    name: str
    distinct: int
    """The number of entries; equal fingerprints count once (ruling C5)."""
    ids: dict[str, None]
    first: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, entries: list[JsonValue]) -> "Siblings":
        objects = [entry for entry in entries if isinstance(entry, dict)]
        ids = dict.fromkeys(own_id for entry in objects if isinstance(own_id := entry.get("id"), str))
        prints = [mark for entry in objects if isinstance(mark := entry.get("fingerprint"), str) and mark.strip()]
        return cls(name, len(entries) - len(prints) + len(set(prints)), ids)


def entry_scope(siblings: Siblings, index: int, entry: JsonValue, faults: Faults) -> Scope | None:
    """Return the scope of one entry, with the line prefix of ruling A4."""
    path = f"{siblings.name}[{index}]"
    value = entry.get("id") if isinstance(entry, dict) else None
    shown = quote(value, 64) if isinstance(value, str) and value.strip() else '"<missing>"'
    prefix = f"{path} (id {shown}): "
    if isinstance(entry, dict):
        return Scope(entry, faults, path, prefix)
    faults.add(Fault(path, f"{prefix}must be an object, not {kind(entry)}"))
    return None


def read_id(scope: Scope, siblings: Siblings, index: int) -> str | None:
    """Read an id by ruling A9, unique among its siblings."""
    value = scope.text("id", required=True)
    if value is None:
        return None
    if not _ID.fullmatch(value):
        scope.fault("id", _ID_RULE)
    if (first := siblings.first.setdefault(value, index)) != index:
        scope.fault("id", f"is already used by {siblings.name}[{first}]")
    return value


def read_delegation(scope: Scope, siblings: Siblings, index: int) -> Clean:
    """Read one delegation as clean members; note its faults in the order of the spec's table."""
    own_id = read_id(scope, siblings, index)
    clean: Clean = {
        "id": own_id,
        **_read_worker(scope),
        "action": scope.choice("action", Action, required=True),
        "prompt": scope.text("prompt", required=True, of="prompt"),
        "deps": _read_deps(scope, own_id, siblings),
        "failure_policy": scope.choice("failure_policy", FailurePolicy),
        **_read_synthesis(scope, siblings.distinct),
        "timeout": _read_timeout(scope),
        "retry": scope.integer("retry", 0, "must be 0 or more") or 0,
        "worktree": _read_worktree(scope),
        "artifacts": _read_artifacts(scope),
        **{name: scope.text(name, of=name) for name in ("fingerprint", "model", "effort", "phase")},
    }
    if merged_leg(clean["worktree"]) and clean["action"] not in (None, Action.IMPLEMENT):
        scope.fault("worktree", "begins a merge, which takes the action implement")
    scope.close(Delegation.model_fields, ServiceResult.model_fields)
    return set_only(clean)


def _read_worker(scope: Scope) -> Clean:
    agent = scope.text("agent", of="agent")
    ephemeral = scope.source.get("ephemeral")
    if not scope.is_set("agent") and ephemeral is None:
        scope.fault("agent", "or ephemeral is required")
    elif scope.is_set("agent") and ephemeral is not None:
        scope.fault("agent", "and ephemeral are both set; set exactly one of them")
    if ephemeral is None:
        return {"agent": agent}
    if not isinstance(ephemeral, dict):
        scope.fault("ephemeral", f"must be an object, not {kind(ephemeral)}")
        return {"agent": agent}
    implements = scope.source.get("action") == Action.IMPLEMENT
    return {"agent": agent, "ephemeral": read_ephemeral(scope.inner("ephemeral", ephemeral), implements=implements)}


def _read_deps(scope: Scope, own_id: str | None, siblings: Siblings) -> list[str]:
    """Read the dependencies, each once: as siblings they cannot outnumber the delegations."""
    deps = list(dict.fromkeys(scope.strings("deps")))
    for dep in deps:
        if dep == own_id:
            scope.fault("deps", f"must not name the delegation itself: {quote(dep)}")
        elif dep not in siblings.ids:
            near = did_you_mean(dep, siblings.ids)
            scope.fault("deps", f"names {quote(dep)}, which is not a delegation of this result{near}")
    return deps


def _read_synthesis(scope: Scope, count: int) -> Clean:
    """Read the rule and its quorum: K of the delegations that run, only with the rule quorum (rulings A8, C5)."""
    rule = scope.choice("synthesis_rule", SynthesisRule)
    quorum = scope.integer("quorum", 1, "must be greater than 0")
    if rule is SynthesisRule.QUORUM and not scope.is_set("quorum"):
        scope.fault("quorum", "is required")
    elif rule is not SynthesisRule.QUORUM and scope.is_set("quorum") and (rule or not scope.is_set("synthesis_rule")):
        scope.fault("quorum", "is only allowed when synthesis_rule is quorum")
    elif quorum is not None and quorum > count:
        scope.fault("quorum", f"must not exceed the number of delegations that run ({count})")
    return {"synthesis_rule": rule, "quorum": quorum}


def _read_timeout(scope: Scope) -> str | None:
    """Read a positive duration (ruling A10)."""
    if isinstance(number := scope.source.get("timeout"), int | float) and not isinstance(number, bool):
        scope.fault("timeout", f'must be a string with a unit, such as "{number}s" or "{number}m"')
        return None
    value = scope.text("timeout", of="timeout")
    if value is None:
        return None
    try:
        seconds = parse_duration(value)
    except DurationError as error:
        scope.fault("timeout", str(error))
        return None
    if seconds <= 0:
        scope.fault("timeout", "must be positive")
    return value


def _read_worktree(scope: Scope) -> str | None:
    """Read a relative name under the service's worktree root (ruling I3)."""
    value = scope.text("worktree")
    if value is not None and (sentence := worktree_fault(value)):
        scope.fault("worktree", sentence)
    return value


def _read_artifacts(scope: Scope) -> list[str]:
    handles = scope.strings("artifacts", of="artifact")
    for index, handle in enumerate(handles):
        if not all(_ARTIFACT_PART.fullmatch(part) for part in handle.split("/")):
            scope.fault(f"artifacts[{index}]", 'must be a plain name such as "plan.md", without ".." or hidden parts')
    return handles
