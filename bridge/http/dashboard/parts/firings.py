"""When schedules fire next, for pages: Temporal is asked now and then, and not waited for for long."""

import time
from collections.abc import Sequence
from functools import partial

from activities.settings.home import Home
from bridge.http.wire.off_loop import at_once
from bridge.operations import pipeline_schedules
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

FRESH_SECONDS = 5.0
WAIT_SECONDS = 1.0
"""Who looks at a page while Temporal hangs waits so long, once in `FRESH_SECONDS`."""

Firings = dict[str, tuple[float, ...]]

_KNOWN: dict[tuple[Home, str], tuple[float, tuple[float, ...]]] = {}
_SILENT: dict[Home, float] = {}
"""When Temporal did not answer last."""


def next_firings(service: Service, names: Sequence[str]) -> Firings | None:
    """By pipeline; None where Temporal does not say."""
    home, now = service.home, time.monotonic()
    unknown = [name for name in names if (home, name) not in _KNOWN or now - _KNOWN[home, name][0] >= FRESH_SECONDS]
    if unknown:
        if now - _SILENT.get(home, -FRESH_SECONDS) < FRESH_SECONDS:
            return None
        try:
            found = at_once(partial(pipeline_schedules.next_firings, service, unknown), WAIT_SECONDS)
        except (ServiceError, TimeoutError):
            _SILENT[home] = now
            return None
        _KNOWN.update({(home, name): (now, times) for name, times in found.items()})
    return {name: _KNOWN[home, name][1] for name in names if (home, name) in _KNOWN}


def forget(service: Service, name: str) -> None:
    """A schedule has been changed."""
    _KNOWN.pop((service.home, name), None)
