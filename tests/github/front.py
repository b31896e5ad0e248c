"""What stands before both GitHubs of the tests: it records every request, brings about the faults that are ordered,
counts the quota, and answers 304 to who has seen the answer already."""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.github.faults import Faults, Lost, Match
from tests.github.quota import Quota
from tests.github.wire import Reply, Request, Server


@dataclass(frozen=True)
class Seen:
    """A request as it was answered."""

    method: str
    path: str
    query: Mapping[str, str]
    status: int
    """0 where the connection was cut."""
    free: bool
    """It did not count against the quota."""
    authorized: bool
    """It came with a credential."""
    done: bool
    """It reached GitHub, whatever became of the reply."""
    body: Any
    at: float
    """`time.monotonic()` when it came."""

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


class Front:
    """A server that hands requests on to `respond`."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.faults = Faults()
        self.quota = Quota()
        self.poll_interval: int | None = None
        """Sent as `x-poll-interval` with every GET when set."""
        self._one_at_a_time = threading.RLock()
        self._server = Server(self._answer)

    def respond(self, request: Request) -> Reply:
        """What GitHub answers, and what it does."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        return self._server.address

    def down(self) -> None:
        """Nobody is there: connections are refused."""
        self._server.down()

    def up(self) -> None:
        """There again, on the same port."""
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
        """Answer the next requests that match so, and do nothing."""
        self.faults.fail(match, times, status, headers, body)

    def cut(self, match: Match, times: int = 1) -> None:
        """Cut the connection before anything is done."""
        self.faults.cut(match, times)

    def after_write(self, match: Match, how: Lost = "502", times: int = 1) -> None:
        """Do what is asked and lose the reply: the client sees a 502 or a connection that is cut."""
        self.faults.after_write(match, how, times)

    def delay(self, match: Match, seconds: float, times: int = 1) -> None:
        """Let them wait."""
        self.faults.delay(match, seconds, times)

    def primary_limit(self, match: Match = "*", times: int = 1, reset_in: float = 60) -> None:
        """Answer that the hour's quota is used up."""
        self.faults.primary_limit(match, times, reset_in)

    def secondary_limit(
        self, match: Match = "*", times: int = 1, retry_after: float | None = 60, status: int = 403
    ) -> None:
        """Answer that there was too much at once."""
        self.faults.secondary_limit(match, times, retry_after, status)

    def writes(self, match: Callable[[Seen], bool] = lambda each: True) -> list[Seen]:
        """The requests that changed something, in their order."""
        changing = ("POST", "PUT", "PATCH", "DELETE")
        return [
            each
            for each in self.requests
            if each.method in changing and each.done and each.status < 400 and match(each)
        ]

    def lines(self) -> list[str]:
        """`METHOD /path` of every request, in their order."""
        return [each.line for each in self.requests]

    def _answer(self, request: Request) -> Reply | None:
        came = time.monotonic()
        ordered = self.faults.ordered_before(request)
        if ordered is not None:
            return self._recorded(request, came, self._decked(request, ordered.reply), done=False)
        with self._one_at_a_time:
            reply = self._decked(request, self._counted(request))
        lost = self.faults.ordered_after(request)
        return self._recorded(request, came, lost.reply if lost else reply, done=True)

    def _counted(self, request: Request) -> Reply:
        """The answer, or 304; only what is not free is counted."""
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
        """Free, but not for a token that nobody knows."""
        answered = self.respond(request)
        return answered if answered.status == 401 else Reply(200, self.quota.document(request.credential))

    def _decked(self, request: Request, reply: Reply | None) -> Reply | None:
        """With the headers that all of GitHub's answers carry; what an answer says itself stays."""
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
