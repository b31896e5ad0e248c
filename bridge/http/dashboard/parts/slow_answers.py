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
class Seen(Generic[T]):
    """What the last look has found; nothing before the first one is over."""

    found: T | None = None
    at: float | None = None
    problem: str = ""
    """Why the last look found nothing."""
    looking: bool = False
    """Another look goes on now."""


@dataclass
class Background(Generic[T]):
    """One look at a time for each home, in a thread of its own."""

    look: Callable[[Service], T]
    good_for: float = 300.0
    """Seconds after which who asks has it looked again."""
    _seen: dict[Home, Seen[T]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, service: Service) -> Seen[T]:
        """What is known now; when that is nothing, or old, another look has begun."""
        known = self._seen.get(service.home, Seen[T]())
        if known.at is None or time.time() - known.at > self.good_for:
            self.begin(service)
        return self._seen[service.home]

    def begin(self, service: Service) -> None:
        """Look again, unless that goes on already."""
        with self._lock:
            known = self._seen.get(service.home, Seen[T]())
            if known.looking:
                return
            self._seen[service.home] = replace(known, looking=True)
        threading.Thread(target=self._look, args=(service.home,), daemon=True, name="background look").start()

    def _look(self, home: Home) -> None:
        """With the settings as they are now, which may be others than those of who asks."""
        service = Service(home)
        try:
            seen = Seen(self.look(service), time.time())
        except ServiceError as error:
            seen = Seen[T](None, time.time(), error.message)
        except Exception:
            log.exception("what is looked at in the background")
            seen = Seen[T](None, time.time(), "it could not be looked at; the bridge's log says why")
        finally:
            if "store" in vars(service):
                service.store.dispose()
        self._seen[home] = seen


MOST_KEPT = 64


class Recent(Generic[T]):
    """The newest answers, by key."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the cached answer if it is fresh, else ask. Errors are not cached."""
        at, answer = self._kept.get(key, (float("-inf"), None))
        if answer is not None and time.monotonic() - at < self._seconds:
            return answer
        answer = ask()
        self._kept[key] = (time.monotonic(), answer)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return answer
