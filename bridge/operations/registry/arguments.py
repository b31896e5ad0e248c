"""Checks of the arguments of orders: texts, timeouts (ruling B6), labels of hosts (ruling Q4)."""

import re
from collections.abc import Iterable, Sequence

from activities.store.registry import host_rows
from bridge.operations.service import Service
from workflows.contract.size_limits import too_long
from workflows.contract.storable import storable
from workflows.model.errors import UsageError
from workflows.policy.placement import ASKED_LABEL, MOST_LABELS
from workflows.text.durations import DurationError, parse_duration


def labels(given: Sequence[str]) -> tuple[str, ...]:
    """Return the labels without empty ones; raise if one is invalid."""
    asked = tuple(dict.fromkeys(label for label in given if label))
    for label in asked:
        if not re.fullmatch(ASKED_LABEL, label):
            raise UsageError(f"{label!r} is not a label", "service host list")
    if len(asked) > MOST_LABELS:
        raise UsageError(f"{len(asked)} labels are more than {MOST_LABELS}", "service host list")
    return asked


def label_caveat(service: Service, required: Iterable[str]) -> str:
    """Return a warning, with the known labels, if a required label belongs to no host; else ""."""
    required = sorted(required)
    if not required:
        return ""
    if not service.settings.is_fleet:
        return "this host has a store of its own, so everything runs here: labels count where hosts share a store"
    known = {label for host in host_rows.every(service.store) for label in host.labels}
    if missing := [label for label in required if label not in known]:
        there = ", ".join(sorted(known)) or "none"
        return f"no host has the label {', '.join(missing)}, so its jobs will wait (there are: {there})"
    return ""


def within_bound(of: str, what: str, text: str) -> str:
    """Return the text in storable form. Refuse one that is too long, naming the option `what`."""
    clean = storable(text)
    if sentence := too_long(of, clean):
        raise UsageError(f"{what} {sentence}")
    return clean


def within_bound_or_none(of: str, what: str, text: str | None) -> str | None:
    """Do as `within_bound` does for an optional text."""
    return within_bound(of, what, text) if text else None


def limit(text: str | None) -> float | None:
    """Return the seconds of an optional timeout; refuse zero and anything that isn't a duration (ruling A10)."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise UsageError(f"the timeout {text!r} {error}") from None
    if not seconds:
        raise UsageError(f"the timeout {text!r} must be positive")
    return seconds
