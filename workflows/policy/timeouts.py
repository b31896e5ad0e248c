"""How long a job may take (spec: timeout precedence; ruling A10)."""

import re

from workflows.contract.models import Action, Delegation
from workflows.model.settings import Timeouts
from workflows.model.workers import Assignment

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
    """Return the first timeout that is set: its own, its phase's, its action's, the general default."""
    told = (
        seconds(delegation.timeout),
        _default(delegation.phase or "", timeouts),
        _default(delegation.action.value, timeouts),
        timeouts.default_delegation_timeout,
    )
    return next((each for each in told if each is not None), None)


def timeout_of_root(asked: Assignment, timeouts: Timeouts) -> float | None:
    """Return its own, else that of phase `plan` where it coordinates: where it is asked, and may delegate."""
    coordinates = asked.action is Action.ASK and not asked.worker.ephemeral
    return asked.timeout_seconds or (timeouts.default_plan_timeout if coordinates else None)


def _default(phase: str, timeouts: Timeouts) -> float | None:
    match _PHASES.get(phase):
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
    """Return a validated duration in seconds, or None if it is missing, zero, or 1e9 seconds or more."""
    parts = _PART.findall(duration or "")
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return total if 0 < total < 1e9 else None
