"""HTTP for the tests' GitHub: requests and replies, and a loopback server that can go down and up."""

import json
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    @property
    def credential(self) -> str:
        """Return the token or JWT, in either spelling GitHub accepts."""
        scheme, _, value = self.headers.get("authorization", "").partition(" ")
        return value.strip() if scheme.lower() in ("bearer", "token") else ""


@dataclass
class Reply:
    status: int
    body: Any = None
    """The body: sent as JSON, bytes raw; None sends no body."""
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Answer = Callable[[Request], Reply | None]
"""Returns None to cut the connection without a reply."""


class Server:
    """A server on a free port of 127.0.0.1, one thread a connection."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.port = 0
        self._listening: _Listener | None = None
        self.up()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        """Listen, on the same port as before if it was down."""
        if self._listening is None:
            self._listening = _Listener(("127.0.0.1", self.port), self)
            self.port = int(self._listening.server_address[1])
            thread = threading.Thread(target=self._listening.serve_forever, args=(0.02,), daemon=True)
            thread.start()

    def down(self) -> None:
        """Refuse every connection from now on, and cut those that are open at their next request."""
        if self._listening is not None:
            self._listening.shutdown()
            self._listening.server_close()
            self._listening = None

    @property
    def is_up(self) -> bool:
        return self._listening is not None


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], server: Server) -> None:
        self.of = server
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Listener

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        request = Request(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self._read(),
        )
        listener = self.server
        reply = listener.of.answer(request) if listener.of._listening is listener else None
        if reply is None:
            self.close_connection = True
            return
        content = reply.content()
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json; charset=utf-8"} if content else {}
        for name, value in {**headers, **reply.headers}.items():
            self.send_header(name, value)
        if reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and reply.status not in (204, 304):
            self.wfile.write(content)

    def _read(self) -> bytes:
        """Return the body; git sends a large one in chunks."""
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

    def version_string(self) -> str:
        return "github.com"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing: requests are recorded."""
