"""The use of the hour's quota by each credential, and GitHub's headers for it."""

import threading
import time
from dataclasses import dataclass, field

from tests.github.faults import primary_limit_body
from tests.github.wire import Json, Reply

LIMIT, ANONYMOUS = 5000, 60


@dataclass
class Quota:
    limit: int | None = None
    """Set by a test that wants less than GitHub gives."""
    reset: int = field(default_factory=lambda: int(time.time()) + 3600)
    _used: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def used(self, credential: str) -> int:
        return self._used.get(credential, 0)

    def count(self, credential: str) -> None:
        with self._lock:
            self._used[credential] = self.used(credential) + 1

    def renew(self, reset_in: float = 3600) -> None:
        """Begin a new hour."""
        with self._lock:
            self._used, self.reset = {}, int(time.time() + reset_in)

    def numbers(self, credential: str) -> dict[str, int]:
        limit = self.limit if self.limit is not None else LIMIT if credential else ANONYMOUS
        used = min(self.used(credential), limit)
        return {"limit": limit, "remaining": limit - used, "used": used, "reset": self.reset}

    def headers(self, credential: str) -> dict[str, str]:
        numbers = {f"x-ratelimit-{name}": str(value) for name, value in self.numbers(credential).items()}
        return {**numbers, "x-ratelimit-resource": "core"}

    def refusal(self, credential: str) -> Reply | None:
        if self.numbers(credential)["remaining"] > 0:
            return None
        return Reply(403, primary_limit_body(), {})

    def document(self, credential: str) -> Json:
        core = {**self.numbers(credential), "resource": "core"}
        other = {**core, "used": 0, "remaining": core["limit"]}
        resources = {"core": core, "search": {**other, "limit": 30, "remaining": 30, "resource": "search"}}
        return {"resources": {**resources, "graphql": {**other, "resource": "graphql"}}, "rate": core}
