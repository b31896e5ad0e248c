"""Authentication of calls from other hosts of the store, by their signature (ruling Q3). They show no token.

Such a call only reads, below a separate path, and does not count against the rate limit of people and programs.
"""

import time

from starlette.types import ASGIApp, Receive, Scope, Send

from activities.sealing import seal_key
from activities.sealing.host_calls import HEADER, HostCall
from activities.store import queries
from bridge.http.gates.auth import address
from bridge.http.gates.gate import header
from bridge.http.gates.rate import Rate
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import UnauthorizedError
from bridge.http.wire.refusals import refuse
from bridge.http.wire.thread_pools import for_host
from bridge.machine.token_scopes import TokenScope
from bridge.operations.jobs.hosts import PREFIX
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

PER_MINUTE = 6000
"""Calls of one host a minute: an open page asks once a second, a followed log three times."""

CLOCK_SECONDS = 60.0


class HostGate:
    """A gate that passes calls of other hosts to `answers`, before the gates that require a token."""

    def __init__(self, app: ASGIApp, service: Service, answers: ASGIApp, strangers: Rate) -> None:
        self.app, self._service, self._answers = app, service, answers
        self._strangers, self._rate = strangers, Rate(PER_MINUTE)
        self._read_at, self._ahead = -CLOCK_SECONDS, 0.0
        """The monotonic time at which the store's clock was read, and the difference between the two clocks."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope.get("path", "").startswith(PREFIX):
            return await self.app(scope, receive, send)
        try:
            await self._let_in(scope)
        except ServiceError as refusal:
            return await refuse(scope, receive, send, refusal)
        return await self._answers(scope, receive, send)

    async def _let_in(self, scope: Scope) -> None:
        """Check the call's signature and age before its rate, so that forged and replayed calls don't count against the
        host.
        """
        keys, query = seal_key.every(self._service.home.root), scope["query_string"].decode("latin-1")
        target = f"{scope.get('raw_path', b'').decode('latin-1')}{'?' if query else ''}{query}"
        shown, here = header(scope, HEADER.encode()) or "", self._service.settings.host
        call = HostCall.read(keys, shown, here, target)
        why = f"only other hosts of this store are answered here, and this is {here}"
        if call and not call.is_fresh(await self._now()):
            call, why = None, "the call was made too long ago"
        if call is None:
            self._strangers.count(f"address {address(scope)}")
            raise UnauthorizedError(why, "Host")
        self._rate.count(call.caller)
        made = call_of(scope)
        made.caller, made.by, made.scope = f"host {call.caller}", f"host {call.caller}", TokenScope.READ

    async def _now(self) -> float:
        """Return the time on the store's clock, which is read once a minute."""
        if time.monotonic() - self._read_at > CLOCK_SECONDS:
            now = await for_host(self._read_clock)
            self._read_at = time.monotonic()
            self._ahead = now - self._read_at
        return time.monotonic() + self._ahead

    def _read_clock(self) -> float:
        return queries.now(self._service.store)
