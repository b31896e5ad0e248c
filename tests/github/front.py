"""The front of the Hub: it records every request, applies ordered faults, counts the quota, and
answers conditional requests with 304.
"""

import hashlib
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.github.description import Description
from tests.github.faults import Faults, Lost, Match
from tests.github.quota import Quota
from tests.github.wire import Reply, Request, Server


@dataclass(frozen=True)
class Seen:
    """A request and its answer."""

    method: str
    path: str
    query: Mapping[str, str]
    status: int
    """0 if the connection was cut."""
    free: bool
    """True if it did not count against the quota."""
    authorized: bool
    """True if it had a credential."""
    done: bool
    """True if it reached GitHub, whatever became of the reply."""
    body: Any
    at: float
    """`time.monotonic()` when it arrived."""

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


class Front:
    """A server that forwards requests to `respond`."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.broken: list[str] = []
        """Internal errors; a test that leaves any fails."""
        self.faults = Faults()
        self.quota = Quota()
        self.described: Description | None = None
        """Holds requests and replies against GitHub's description when set."""
        self.poll_interval: int | None = None
        """Sent as `x-poll-interval` with every GET when set."""
        self._one_at_a_time = threading.RLock()
        self._server = Server(self._answer)

    def respond(self, request: Request) -> Reply:
        """Carry out a request and return GitHub's answer."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        return self._server.address

    def down(self) -> None:
        """Refuse connections."""
        self._server.down()

    def up(self) -> None:
        """Listen again, on the same port."""
        self._server.up()

    def stop(self) -> None:
        self._server.down()

    def fail(
        self,
        match: Match,
        times: int = 1,
        status: int = 500,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> None:
        """Answer the next matching requests with this status, and do nothing."""
        self.faults.fail(match, times, status, headers, body)

    def cut(self, match: Match, times: int = 1) -> None:
        """Cut the connection before anything is done."""
        self.faults.cut(match, times)

    def after_write(self, match: Match, how: Lost = "502", times: int = 1) -> None:
        """Carry out the request and lose the reply: the client sees a 502 or a cut connection."""
        self.faults.after_write(match, how, times)

    def delay(self, match: Match, seconds: float, times: int = 1) -> None:
        """Delay the next matching requests."""
        self.faults.delay(match, seconds, times)

    def primary_limit(self, match: Match = "*", times: int = 1, reset_in: float = 60) -> None:
        """Answer that the hour's quota is used up."""
        self.faults.primary_limit(match, times, reset_in)

    def secondary_limit(
        self, match: Match = "*", times: int = 1, retry_after: float | None = 60, status: int = 403
    ) -> None:
        """Answer with a secondary rate limit."""
        self.faults.secondary_limit(match, times, retry_after, status)

    def writes(self, match: Callable[[Seen], bool] = lambda request: True) -> list[Seen]:
        """Return the requests that changed something, in order."""
        changing = ("POST", "PUT", "PATCH", "DELETE")
        return [
            request
            for request in self.requests
            if request.method in changing and request.done and request.status < 400 and match(request)
        ]

    def lines(self) -> list[str]:
        """Return `METHOD /path` of every request, in order."""
        return [each.line for each in self.requests]

    def _answer(self, request: Request) -> Reply | None:
        came = time.monotonic()
        ordered = self.faults.ordered_before(request)
        if ordered is not None:
            return self._recorded(request, came, self._decked(request, ordered.reply), done=False)
        with self._one_at_a_time:
            reply = self._decked(request, self._tried(request))
        lost = self.faults.ordered_after(request)
        return self._recorded(request, came, lost.reply if lost else reply, done=True)

    def _tried(self, request: Request) -> Reply:
        """Record an internal error, so that it does not look like one of the product's."""
        try:
            return self._counted(request)
        except Exception:
            self.broken.append(f"{request.line}\n{traceback.format_exc()}")
            return Reply(500, {"message": self.broken[-1]})

    def _counted(self, request: Request) -> Reply:
        """Return the answer, or 304; count what is not free."""
        if request.path == "/rate_limit":
            return self._rate_limit(request)
        refused = self.quota.refusal(request.credential)
        if refused is not None:
            return refused
        if "user-agent" not in request.headers:
            return Reply(
                403, b"Request forbidden by administrative rules. Please make sure your request has a User-Agent header"
            )
        reply = self.respond(request)
        if self.described is not None:
            self.described.check(request, reply)
        if request.method == "GET" and reply.status == 200:
            tag = f'W/"{hashlib.sha256(request.credential.encode() + reply.content()).hexdigest()}"'
            known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
            reply.headers["ETag"] = tag
            if tag.removeprefix("W/") in known:
                if not request.credential:
                    self.quota.count("")
                return Reply(304, None, {"ETag": tag})
        self.quota.count(request.credential)
        return reply

    def _rate_limit(self, request: Request) -> Reply:
        """Answer for free, but refuse unknown tokens."""
        answered = self.respond(request)
        return answered if answered.status == 401 else Reply(200, self.quota.document(request.credential))

    def _decked(self, request: Request, reply: Reply | None) -> Reply | None:
        """Add the headers of all GitHub's answers, except those an answer already has."""
        if reply is None:
            return None
        mine = {name.lower() for name in reply.headers}
        more = {
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": secrets.token_hex(8).upper(),
            **self.quota.headers(request.credential),
        }
        if request.method == "GET" and self.poll_interval is not None:
            more["x-poll-interval"] = str(self.poll_interval)
        headers = {**reply.headers, **{name: value for name, value in more.items() if name.lower() not in mine}}
        return Reply(reply.status, reply.body, headers)

    def _recorded(self, request: Request, came: float, reply: Reply | None, done: bool) -> Reply | None:
        try:
            body = request.json()
        except ValueError:
            body = request.body
        status = reply.status if reply else 0
        free = request.path == "/rate_limit" or (status == 304 and bool(request.credential))
        shown = bool(request.credential)
        self.requests.append(Seen(request.method, request.path, request.query, status, free, shown, done, body, came))
        return reply
