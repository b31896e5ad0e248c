"""Labels that repositories, agents and pipelines' stages ask of a host (ruling Q4)."""

import re
from collections.abc import Iterable, Sequence

from activities.store.registry import hosts
from bridge.operations.service import Service
from workflows.model.errors import UsageError
from workflows.policy.placement import ASKED_LABEL, MOST_LABELS


def checked(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels without empty ones; raise if one is invalid."""
    asked = tuple(dict.fromkeys(label for label in labels if label))
    for label in asked:
        if not re.fullmatch(ASKED_LABEL, label):
            raise UsageError(f"{label!r} is not a label", "service host list")
    if len(asked) > MOST_LABELS:
        raise UsageError(f"{len(asked)} labels are more than {MOST_LABELS}", "service host list")
    return asked


def caveat(service: Service, required: Iterable[str]) -> str:
    """Return a warning if no host has a required label, with the labels there are; empty if all is well."""
    required = sorted(required)
    if not required:
        return ""
    if not service.settings.is_fleet:
        return "this host has a store of its own, so everything runs here: labels count where hosts share a store"
    known = {label for host in hosts.every(service.store) for label in host.labels}
    if missing := [label for label in required if label not in known]:
        there = ", ".join(sorted(known)) or "none"
        return f"no host has the label {', '.join(missing)}, so its jobs will wait (there are: {there})"
    return ""
