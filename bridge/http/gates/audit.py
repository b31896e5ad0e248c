"""One audit line for every call, whatever its outcome (ruling J11). This gate is the outermost, so no call escapes it.

Calls without a valid token, session or signature go to a separate log, so that strangers can't rotate the operator's
calls out of the main log. Beyond a rate limit such calls are only counted, and text that strangers chose is never
copied (ruling N8).
"""

import json
import logging
import sys
import time
from collections.abc import Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bridge.http.gates.auth import address
from bridge.http.gates.rate import Rate
from bridge.http.wire.call import Call, call_of
from bridge.http.wire.refusals import answer_to

log = logging.getLogger(__name__)

ROTATE_BYTES = 8 * 1024 * 1024
STRANGERS = 60
"""Lines a minute for calls of strangers."""

KEPT = 5
"""Rotated files beside the current one; the oldest is deleted."""

OTHER = "-"
"""Placeholder for an unknown method or path."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class AuditGate:
    """A gate that gives the call its id, answers uncaught exceptions, and writes the audit line after the answer."""

    def __init__(
        self, app: ASGIApp, log_file: "AuditLog", strangers: "Strangers", routes: Sequence[BaseRoute] = ()
    ) -> None:
        self.app, self._log, self._strangers = app, log_file, strangers
        self._routes = [route for route in routes if isinstance(route, Route)]

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
            line = self._fields(scope, call, time.perf_counter() - begun)
            self._log.write(_ENCODER.encode(line)) if call.caller else self._strangers.write(line)
        return None

    def _fields(self, scope: Scope, call: Call, seconds: float) -> dict[str, Any]:
        return {
            "time": time.time(),
            "request_id": call.request_id,
            "method": scope["method"] if scope["method"] in _METHODS else OTHER,
            "route": self._route(scope),
            "status": call.status,
            "duration_ms": round(seconds * 1000, 3),
            "address": address(scope),
            "by": call.by,
            "bytes_in": call.bytes_in,
            "created": call.created,
            "error": call.code,
        }

    def _route(self, scope: Scope) -> str:
        """Return the path pattern of the call's route, which contains no text of the caller, even if a gate refused the
        call before routing.
        """
        route = scope.get("route") or next(
            (known for known in self._routes if known.path_regex.match(scope["path"])), None
        )
        return route.path if route else OTHER


class Strangers:
    """The log of calls without a valid token, session or signature."""

    def __init__(self, log_file: "AuditLog", rate: Rate) -> None:
        self._log, self._rate, self._skipped = log_file, rate, 0

    def write(self, line: dict[str, Any]) -> None:
        """Write a line with the number of calls skipped before it. Beyond the rate limit, only count the call."""
        if self._rate.take("strangers"):
            self._skipped += 1
            return
        more = {"untold_before": self._skipped} if self._skipped else {}
        self._skipped = 0
        self._log.write(_ENCODER.encode(line | more))


class AuditLog(RotatingFileHandler):
    """A log of JSON lines, each appended whole, with rotation by size."""

    def __init__(self, path: Path, rotate_bytes: int = ROTATE_BYTES) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        super().__init__(path, maxBytes=rotate_bytes, backupCount=KEPT, encoding="utf-8")

    def write(self, line: str) -> None:
        """Append a line without waiting for the disk."""
        self.handle(logging.makeLogRecord({"msg": line}))

    def rotate(self, source: str, dest: str) -> None:
        """Create the next file with the owner's permissions alone."""
        super().rotate(source, dest)
        Path(source).touch(0o600)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Log an error of the disk. A full disk must not take the bridge down."""
        log.error("cannot write %s: %s", self.baseFilename, sys.exc_info()[1])
