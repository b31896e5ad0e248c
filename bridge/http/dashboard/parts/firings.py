"""The next firings of schedules, for pages: cached answers of Temporal, with a short timeout."""

import time
from collections.abc import Sequence
from functools import partial

from activities.settings.home import Home
from bridge.http.wire.thread_pools import at_once
from bridge.operations.pipelines import workflows
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

FRESH_SECONDS = 5.0
WAIT_SECONDS = 1.0
"""The longest wait for Temporal; after a timeout no page asks again for `FRESH_SECONDS`."""

Firings = dict[str, tuple[float, ...]]

_KNOWN: dict[tuple[Home, str], tuple[float, tuple[float, ...]]] = {}
_SILENT: dict[Home, float] = {}
"""The time of Temporal's last failure to answer."""


def next_firings(service: Service, names: Sequence[str]) -> Firings | None:
    """Return the next firings by pipeline; None if Temporal does not answer."""
    home, now = service.home, time.monotonic()
    unknown = [name for name in names if (home, name) not in _KNOWN or now - _KNOWN[home, name][0] >= FRESH_SECONDS]
    if unknown:
        if now - _SILENT.get(home, -FRESH_SECONDS) < FRESH_SECONDS:
            return None
        try:
            firings = at_once(partial(workflows.next_firings, service, unknown), WAIT_SECONDS)
        except (ServiceError, TimeoutError):
            _SILENT[home] = now
            return None
        _KNOWN.update({(home, name): (now, times) for name, times in firings.items()})
    return {name: _KNOWN[home, name][1] for name in names if (home, name) in _KNOWN}


def forget(service: Service, name: str) -> None:
    """Drop a schedule from the cache after a change."""
    _KNOWN.pop((service.home, name), None)
