"""Asking another host's bridge for what lies only in that host's home: the output of its runs (ruling Q3).

A host that cannot be asked is named in a sentence, with the command to type there; no caller waits longer than a few
seconds for it.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlencode

from activities.sealing import seal_key
from activities.sealing.host_calls import HEADER, HostCall
from activities.store import database
from activities.store.registry import hosts
from bridge.operations.service import Service
from workflows.contract.size_limits import short_line
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError, UsageError

if TYPE_CHECKING:
    import httpx

PREFIX = "/hosts/"
"""The path below which a bridge answers other hosts."""
NEXT = "x-next-cursor"
"""The header with the offset behind a piece of raw output."""

CONNECT_SECONDS, SECONDS = 2.0, 5.0
MOST = 32 * 1024 * 1024
"""Bytes of an answer."""
AWAY_SECONDS = 5.0
"""Seconds for which a host that did not answer is not asked again: an open page asks every second."""

_away: dict[str, tuple[float, str]] = {}
"""Addresses that did not answer: until when they are left alone, and the reason."""


@dataclass(frozen=True)
class OtherHost:
    """A host of this store, and what is wanted from it: a sentence's subject, and the command for people."""

    service: Service
    name: str
    subject: str
    command: str

    def text(self, path: str, **query: object) -> str:
        """Return the answer as text."""
        return self._get(path, query)[0].decode(errors="replace")

    def raw(self, path: str, cursor: int) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of a raw output, each with the offset behind it, until no more is there."""
        while True:
            piece, headers = self._get(path, {"cursor": cursor})
            behind = int(headers.get(NEXT, cursor))
            if behind <= cursor:
                return
            yield piece, behind
            cursor = behind

    def _get(self, path: str, query: dict[str, object]) -> "tuple[bytes, httpx.Headers]":
        host = hosts.get(self.service.store, self.name)
        if host is None or not host.address:
            raise RefusedError(f"{self.subject} on the host {self.name}, which other hosts cannot ask", self._there)
        parameters = urlencode({name: value for name, value in query.items() if value is not None})
        target = f"{PREFIX}{path}{'?' if parameters else ''}{parameters}"
        status, body, headers = self._answer(host.address, target)
        if status != 200:
            self._refuse(host.address, status, body)
        return body, headers

    def _answer(self, address: str, target: str) -> "tuple[int, bytes, httpx.Headers]":
        import httpx

        until, why = _away.get(address, (0.0, ""))
        if time.monotonic() < until:
            raise self._unreachable(address, why)
        deadline, body = time.monotonic() + SECONDS, bytearray()
        try:
            with _client().stream("GET", f"{address.rstrip('/')}{target}", headers=self._signed(target)) as answer:
                for piece in answer.iter_bytes():
                    body += piece
                    if time.monotonic() > deadline or len(body) > MOST:
                        raise httpx.ReadTimeout("its answer is too long, or takes too long")
                return answer.status_code, bytes(body), answer.headers
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            _away[address] = time.monotonic() + AWAY_SECONDS, why
            raise self._unreachable(address, why) from None

    def _signed(self, target: str) -> dict[str, str]:
        key = seal_key.read(self.service.home.root)
        if key is None:
            why = "this home has no seal key, which proves to other hosts that it is of this store"
            raise RefusedError(f"{self.subject} on the host {self.name}; {why}", self._there)
        with self.service.store.connect() as connection:
            now = database.now(connection)
        return {HEADER: HostCall(self.service.settings.host, self.name, target, now).header(key)}

    def _unreachable(self, address: str, why: str) -> UnreachableError:
        message = f"{self.subject} on the host {self.name}, which does not answer at {address}: {short_line(why, 200)}"
        return UnreachableError(message, self._there)

    def _refuse(self, address: str, status: int, body: bytes) -> NoReturn:
        """Raise the refusal of the other host as this one's, with its name."""
        kinds: dict[int, type[ServiceError]] = {400: UsageError, 404: NotFoundError, 409: RefusedError}
        try:
            refusal = str(json.loads(body)["error"])
        except (ValueError, TypeError, LookupError):
            refusal = f"status {status}"
        message, _, hint = refusal.partition("; try: ")
        if status not in kinds:
            raise self._unreachable(address, message)
        raise kinds[status](f"{message} (says the host {self.name})", hint or self._there)

    @property
    def _there(self) -> str:
        return f"ssh {self.name} {self.command}"


@cache
def _client() -> "httpx.Client":
    """Return the client for all hosts. No proxy comes between them, and it follows no redirection."""
    import ssl

    import httpx

    limits = httpx.Timeout(SECONDS, connect=CONNECT_SECONDS)
    return httpx.Client(timeout=limits, follow_redirects=False, trust_env=False, verify=ssl.create_default_context())
