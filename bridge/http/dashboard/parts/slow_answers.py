"""Slow answers, cached: computed in the background, or kept for a few seconds."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from activities.settings.home import Home
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class LastCheck(Generic[T]):
    """The cached result of the last check; empty until the first check has ended."""

    answer: T | None = None
    at: float | None = None
    problem: str = ""
    """Why the last check failed."""
    looking: bool = False
    """True while another check runs."""


@dataclass
class Background(Generic[T]):
    """A background check with one cached result for each home; at most one runs at a time."""

    look: Callable[[Service], T]
    good_for: float = 300.0
    """Seconds after which a call to `last_check` starts another check."""
    _checks: dict[Home, LastCheck[T]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def last_check(self, service: Service) -> LastCheck[T]:
        """Return the cached result, and start another check if the result is missing or old."""
        known = self._checks.get(service.home, LastCheck[T]())
        if known.at is None or time.time() - known.at > self.good_for:
            self.begin(service)
        return self._checks[service.home]

    def begin(self, service: Service) -> None:
        """Start a check, unless one is running."""
        with self._lock:
            known = self._checks.get(service.home, LastCheck[T]())
            if known.looking:
                return
            self._checks[service.home] = replace(known, looking=True)
        threading.Thread(target=self._look, args=(service.home,), daemon=True, name="background look").start()

    def _look(self, home: Home) -> None:
        """Run the check with newly read settings; those of the caller may be outdated."""
        service = Service(home)
        try:
            seen = LastCheck(self.look(service), time.time())
        except ServiceError as error:
            seen = LastCheck[T](None, time.time(), error.message)
        except Exception:
            log.exception("the check in the background")
            seen = LastCheck[T](None, time.time(), "the check failed; the bridge's log says why")
        finally:
            if "store" in vars(service):
                service.store.dispose()
        self._checks[home] = seen


MOST_KEPT = 64


class Recent(Generic[T]):
    """The newest answers, by key."""

    def __init__(self, seconds: float, most: int = MOST_KEPT) -> None:
        self._seconds, self._most = seconds, most
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the cached answer if it is fresh, else ask. Errors are not cached."""
        at, answer = self._kept.get(key, (float("-inf"), None))
        if answer is not None and time.monotonic() - at < self._seconds:
            return answer
        answer = ask()
        self._kept[key] = (time.monotonic(), answer)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return answer
