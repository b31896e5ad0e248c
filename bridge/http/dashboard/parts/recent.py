"""A cache with an expiry of a few seconds for slow answers: an open page asks for them again and again."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
MOST = 64


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
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return answer
