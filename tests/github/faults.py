"""Faults on the way to GitHub and back, ordered by a test."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from tests.github.wire import Reply, Request

Match = str | Callable[[Request], bool]
"""`"POST /repos/*/issues/*/comments"` (shell patterns, a method and a path), or a function."""

Lost = Literal["502", "cut"]
DOCS = "https://docs.github.com/rest"


@dataclass
class _Order:
    match: Match
    times: int
    reply: Reply | None = None
    """None cuts the connection."""

    def takes(self, request: Request) -> bool:
        fits = fnmatchcase(request.line, self.match) if isinstance(self.match, str) else self.match(request)
        if not fits or self.times <= 0:
            return False
        self.times -= 1
        return True


@dataclass
class Faults:
    """A queue of ordered faults, used up in order; one request uses one of each kind."""

    before: list[_Order] = field(default_factory=list)
    after: list[_Order] = field(default_factory=list)
    delays: list[tuple[_Order, float]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(
        self,
        match: Match,
        times: int = 1,
        status: int = 500,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> None:
        """Answer with this status, and do nothing."""
        answer = {"message": "Server Error"} if body is None else body
        self.before.append(_Order(match, times, Reply(status, answer, dict(headers or {}))))

    def cut(self, match: Match, times: int = 1) -> None:
        """Cut the connection before anything is done."""
        self.before.append(_Order(match, times))

    def after_write(self, match: Match, how: Lost = "502", times: int = 1) -> None:
        """Carry out the request, then lose the reply."""
        bad_gateway = Reply(502, {"message": "Server Error"})
        self.after.append(_Order(match, times, bad_gateway if how == "502" else None))

    def delay(self, match: Match, seconds: float, times: int = 1) -> None:
        self.delays.append((_Order(match, times), seconds))

    def primary_limit(self, match: Match = "*", times: int = 1, reset_in: float = 60, limit: int = 5000) -> None:
        """Answer that the hour's quota is used up until `reset_in` seconds from now."""
        headers = {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": "0",
            "x-ratelimit-used": str(limit),
            "x-ratelimit-reset": str(int(time.time() + reset_in)),
            "x-ratelimit-resource": "core",
        }
        self.fail(match, times, 403, headers, primary_limit_body())

    def secondary_limit(
        self, match: Match = "*", times: int = 1, retry_after: float | None = 60, status: int = 403
    ) -> None:
        """Answer with a secondary rate limit; without `retry_after` GitHub does not say for how long."""
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        body = {
            "message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
            "For more on scraping GitHub and how it may affect your rights, please review our Terms of Service "
            "(https://docs.github.com/en/site-policy/github-terms/github-terms-of-service)",
            "documentation_url": f"{DOCS}/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits",
        }
        self.fail(match, times, status, headers, body)

    def ordered_before(self, request: Request) -> _Order | None:
        """Wait as long as ordered, then return the fault that replaces this request's answer, if any."""
        with self._lock:
            wait = next((seconds for order, seconds in self.delays if order.takes(request)), 0.0)
        if wait:
            time.sleep(wait)
        with self._lock:
            return next((order for order in self.before if order.takes(request)), None)

    def ordered_after(self, request: Request) -> _Order | None:
        with self._lock:
            return next((order for order in self.after if order.takes(request)), None)


def primary_limit_body(login: str = "user") -> dict[str, str]:
    return {
        "message": f"API rate limit exceeded for {login}.",
        "documentation_url": f"{DOCS}/using-the-rest-api/rate-limits-for-the-rest-api",
    }
