"""One line for every call, whatever became of it (ruling J11). Around everything else, so that nothing escapes it.

Except for deliveries of strangers once there are too many of them: who needs no token must not fill the log (L7).
"""

import json
import logging
import os
import time
from io import FileIO
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from activities.redaction.redacted import redacted
from bridge.http.gates.auth import address
from bridge.http.wire.call import Call, call_of
from bridge.http.wire.refusals import answer_to

log = logging.getLogger(__name__)

ROTATE_BYTES = 8 * 1024 * 1024
KEPT = 5
"""Files beside the one that is written to; the oldest goes."""

_ENCODER = json.JSONEncoder(separators=(",", ":"))


class AuditGate:
    """Gives the call its id, answers what nobody caught, and writes the line when the answer is sent."""

    def __init__(self, app: ASGIApp, log_file: "AuditLog") -> None:
        self.app, self._log = app, log_file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        call, begun = call_of(scope), time.perf_counter()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", call.request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception as error:
            response = answer_to(scope, error)
            if not call.status:
                await response(scope, receive, sending)
        finally:
            if not call.unlisted:
                self._log.write(_line(scope, call, time.perf_counter() - begun))
        return None


class AuditLog:
    """Lines of JSON, appended whole; a file that grew too large is set aside."""

    def __init__(self, path: Path, rotate_bytes: int = ROTATE_BYTES) -> None:
        self._path, self._limit = path, rotate_bytes
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self._open()

    def write(self, line: str) -> None:
        """An append goes to memory and waits for no disk; a disk that is full must not take the bridge down."""
        try:
            if os.fstat(self._file.fileno()).st_size >= self._limit:
                self._rotate()
            self._file.write(f"{line}\n".encode())
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error.strerror)

    def _open(self) -> FileIO:
        return FileIO(self._path, "a", opener=lambda path, flags: os.open(path, flags, 0o600))

    def _rotate(self) -> None:
        if self._is_still_there():
            for number in range(KEPT - 1, 0, -1):
                older = self._numbered(number)
                if older.exists():
                    older.replace(self._numbered(number + 1))
            self._path.replace(self._numbered(1))
        full, self._file = self._file, self._open()
        full.close()

    def _is_still_there(self) -> bool:
        """Another bridge of this home may have set the file aside already."""
        return self._path.exists() and os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _line(scope: Scope, call: Call, seconds: float) -> str:
    route = scope.get("route")
    return _ENCODER.encode(
        {
            "time": time.time(),
            "request_id": call.request_id,
            "method": scope["method"],
            "route": getattr(route, "path", None) or redacted(scope["path"])[:200],
            "status": call.status,
            "duration_ms": round(seconds * 1000, 3),
            "address": address(scope),
            "bytes_in": call.bytes_in,
            "created": call.created,
            "error": call.code,
        }
    )
