"""How long a child job may take (spec: timeout precedence; ruling A10)."""

import re

from workflows.contract.models import Action, Delegation
from workflows.policy.settings import Timeouts

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_PHASES = {
    "plan": "plan",
    "implement": "implement",
    "review": "review",
    "review-prep": "review",
    "review-dispatch": "review",
    "gate": "gate",
    "repair": "repair",
    "continue": "repair",
}


def timeout_of(delegation: Delegation, timeouts: Timeouts) -> float | None:
    """Its own, then its phase's (or its action's, when the phase says nothing), then the default, then none."""
    own = seconds(delegation.timeout)
    if own is not None:
        return own
    phase = _phase_default(delegation.phase, delegation.action, timeouts)
    return phase if phase is not None else timeouts.default_delegation_timeout


def _phase_default(phase: str | None, action: Action, timeouts: Timeouts) -> float | None:
    match _PHASES.get(phase or "") or _PHASES.get(action.value):
        case "plan":
            return timeouts.default_plan_timeout
        case "implement":
            return timeouts.default_implement_timeout
        case "review":
            return timeouts.default_review_timeout
        case "gate":
            return timeouts.default_gate_timeout
        case "repair":
            return timeouts.default_repair_timeout
        case _:
            return None


def seconds(duration: str | None) -> float | None:
    """A validated duration in seconds; None for one that is absent or says nothing."""
    parts = _PART.findall(duration or "")
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return total if 0 < total < 1e9 else None
