"""A limit on connections, and timeouts for clients that do not finish a request (ruling N8)."""

import asyncio
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bridge.http.wire.call import Call
from bridge.http.wire.errors import BusyError, HttpError, InvalidHttpError
from bridge.http.wire.refusals import body_of

MOST = 256
"""The limit of open connections. A further connection closes the one that was idle longest, or is refused if all are
active.
"""

HEAD_SECONDS, BODY_SECONDS = 15.0, 60.0
"""The timeouts for the head of a request, and for its body: slow senders must not keep connections open."""


class Connection(H11Protocol):
    """A connection with timeouts; it answers invalid HTTP with the common error body (ruling J1)."""

    _late: asyncio.TimerHandle | None = None
    _awaited: object = None
    """The part of a request (head or body) that is arriving."""
    _heard_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heard_at = self.loop.time()
        self._await(h11.IDLE)
        if len(self.connections) > MOST and not self._make_room():
            self._answer(BusyError())

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        super().data_received(data)
        state = self.conn.their_state
        self._await(state if state in (h11.IDLE, h11.SEND_BODY) else None)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._await(None)

    def send_400_response(self, msg: str) -> None:
        self._answer(InvalidHttpError(msg))

    def _await(self, part: object) -> None:
        if part is self._awaited:
            return
        if self._late is not None:
            self._late.cancel()
        seconds = HEAD_SECONDS if part is h11.IDLE else BODY_SECONDS
        self._awaited = part
        self._late = self.loop.call_later(seconds, self.transport.abort) if part else None

    def _make_room(self) -> bool:
        others = (other for other in self.connections if isinstance(other, Connection) and other is not self)
        silent = min((other for other in others if other._is_silent()), key=lambda other: other._heard_at, default=None)
        if silent is None:
            return False
        silent.transport.abort()
        return True

    def _is_silent(self) -> bool:
        """Return whether the connection is idle: no request is being answered."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        return not at_work and not self.transport.is_closing()

    def _answer(self, error: HttpError) -> None:
        body = body_of(error, Call().request_id)
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        status = HTTPStatus(error.status)
        for event in (
            h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
