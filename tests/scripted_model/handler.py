"""The HTTP handler: it selects a request's protocol, and sends turns, including faults."""

import json
import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.scripted_model.chat import Chat
from tests.scripted_model.messages import Messages
from tests.scripted_model.responses import Responses
from tests.scripted_model.wire import Event, Json, Protocol

if TYPE_CHECKING:
    from tests.scripted_model.server import ScriptedModel, Turn

PROTOCOLS: tuple[Protocol, ...] = (Responses(), Messages(), Chat())
SCENARIO = re.compile(r"^/s/([A-Za-z0-9._-]+)(/.*|$)")
NAMES = ("gpt-6.1-sol", "claude-opus-5-5", "kimi-default")
HEAD = 3
"""Number of events sent before a stream is cut off; an error comes one earlier."""


class Handler(BaseHTTPRequestHandler):
    """A connection of a program."""

    protocol_version = "HTTP/1.1"
    model: "ScriptedModel"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        path, _ = self._address()
        if path.rstrip("/").endswith("/models"):
            self._send(200, _models())
        else:
            self.model.note(protocol="other", path=path)
            self._send(200 if path == "/" else 404, {})

    def do_POST(self) -> None:
        path, scenario = self._address()
        raw, tail = self._body(), path.rstrip("/")
        protocol = next((protocol for protocol in PROTOCOLS if tail.endswith(protocol.path)), None)
        if tail.endswith("/count_tokens"):
            self._send(200, {"input_tokens": max(1, len(raw) // 4)})
        elif protocol is None:
            self.model.note(protocol="other", path=path)
            self._send(404, {"error": {"message": f"no such endpoint: {path}"}})
        else:
            self._ask(protocol, raw, scenario)

    def _ask(self, protocol: Protocol, raw: bytes, scenario: str | None) -> None:
        try:
            body = json.loads(raw)
        except ValueError:
            self.model.note(protocol="other", path=self.path, encoding=self.headers.get("content-encoding"))
            self._send(400, protocol.refusal(400, "the body is no JSON"))
        else:
            self._answer(protocol, body, scenario)

    def _answer(self, protocol: Protocol, body: Json, scenario: str | None) -> None:
        asked = protocol.asked(body)
        program, key = self.headers.get("user-agent", ""), self.headers.get("authorization", "")
        turn = self.model.turn(protocol, asked, scenario, program, key)
        if turn is None:
            self._send(400, protocol.refusal(400, f"no such scenario: {asked.user_text[-200:]}"))
        elif not self._refused(protocol, turn):
            if asked.stream:
                self._stream(protocol.stream(turn.answer, asked), protocol, turn)
            elif turn.kind in ("truncate", "sse_error"):
                self._drop()
            else:
                self._send(200, protocol.whole(turn.answer))

    def _refused(self, protocol: Protocol, turn: "Turn") -> bool:
        """Send the turn's fault in place of the answer, and return True; return False if it has none."""
        fault = turn.fault
        if turn.kind == "status":
            status, message = int(fault.get("status", 500)), fault.get("message", "scripted failure")
            body = protocol.refusal(status, message, fault.get("type"))
            self._send(status, body, fault.get("headers"))
            return True
        if turn.kind == "hang":
            self._left(3600)
        if turn.kind in ("close", "hang") or (turn.kind == "slow" and self._left(fault.get("delay", 30))):
            self._drop()
            return True
        return False

    def _stream(self, events: Iterator[Event], protocol: Protocol, turn: "Turn") -> None:
        self.send_response(200)
        headers = {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
        for name, value in (headers | {"x-request-id": "req_scripted", "request-id": "req_scripted"}).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for number, event in enumerate(events):
                if turn.kind == "truncate" and number == HEAD:
                    return self._drop()
                if turn.kind == "sse_error" and number == HEAD - 1:
                    self._event(protocol.broken(turn.fault.get("message", "scripted stream error")))
                    break
                self._event(event)
                if turn.kind == "drip" and self._left(turn.fault.get("delay", 0.5)):
                    return self._drop()
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _event(self, event: Event) -> None:
        name, data = event
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        frame = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        self.wfile.flush()

    def _send(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        lines = {"content-type": "application/json", "content-length": str(len(data))} | (headers or {})
        for name, value in lines.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _address(self) -> tuple[str, str | None]:
        """Return the path, and the scenario before it."""
        path = self.path.split("?", 1)[0]
        named = SCENARIO.match(path)
        return (named[2] or "/", named[1]) if named else (path, None)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _left(self, seconds: float) -> bool:
        """Wait for a time; return True as soon as the program disconnects or the server closes."""
        end, gone = time.monotonic() + seconds, select.poll()  # select() does not accept a descriptor above 1023
        gone.register(self.connection, select.POLLIN)
        while time.monotonic() < end and not self.model.closing.is_set():
            if gone.poll(100):
                try:
                    if self.connection.recv(1, socket.MSG_PEEK) == b"":
                        return True
                    time.sleep(0.1)
                except OSError:
                    return True
        return self.model.closing.is_set()

    def _drop(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _models() -> Json:
    same = {"object": "model", "type": "model", "owned_by": "scripted", "created": 0, "context_length": 262144}
    same |= {"created_at": "2025-01-01T00:00:00Z"}
    return {
        "object": "list",
        "data": [{"id": name, "display_name": name} | same for name in NAMES],
        "models": [],
        "has_more": False,
    }
