"""`service mcp`: MCP over standard input and output, passed on to the bridge of this home (ruling S1).

It imports nothing of the service: some clients drop a server that needs a second to start. It calls the bridge itself,
so that the bridge sees who started it, and an agent gains nothing by starting it (ruling S4).
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOKEN = "SERVICE_MCP_TOKEN"  # noqa: S105
AT_ONCE = 32
START_SECONDS = 120.0
"""The time the daemon may take to start."""

CALL_SECONDS = 90.0
_VERSION = "io.modelcontextprotocol/protocolVersion"
_CALL = "tools/call"


class BridgeDownError(Exception):
    """The bridge can't be reached; the message says what to type."""


class Passing:
    """The messages of one client on their way to the bridge and back."""

    def __init__(self, home: Path, token: str) -> None:
        self._home, self._token, self._version, self._client = home, token, "", "stdio"
        self._writing, self._starting = threading.Lock(), threading.Lock()
        self._open = dict[str, http.client.HTTPConnection]()

    def pass_on(self, line: bytes) -> None:
        """Send a message to the bridge, and write its answer."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "This line is not JSON."}})
            return
        try:
            self._call(message, line)
        except BridgeDownError as error:
            self._refuse(message, str(error))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._refuse(message, f"The call of the bridge was cut off ({error}). Look before you repeat it.")

    def _call(self, message: dict[str, Any], line: bytes) -> None:
        params = _part(message, "params")
        method = str(message.get("method", ""))
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
            return
        if method == "initialize":
            self._client = str(_part(params, "clientInfo").get("name", self._client))
        version = str(_part(params, "_meta").get(_VERSION, self._version))
        named = str(params.get("name", params.get("uri", "")))
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "User-Agent": self._client,
            "Mcp-Method": method,
        }
        headers |= {"Mcp-Name": named} if named else {}
        headers |= {"Mcp-Protocol-Version": version} if version and method != "initialize" else {}
        request = json.dumps(message.get("id"))
        connection = self._open[request] = self._connect()
        try:
            connection.request("POST", "/mcp", line, {name: _plain(value) for name, value in headers.items()})
            response = connection.getresponse()
            if response.headers.get_content_type() == "text/event-stream":
                for part in response:
                    if part.startswith(b"data:"):
                        self._write(json.loads(part[5:]))
                return
            body = response.read()
        except (OSError, http.client.HTTPException):
            if request in self._open:
                raise
            return
        finally:
            self._open.pop(request, None)
            connection.close()
        self._answer(message, response.status, body)

    def _cancel(self, request: object) -> None:
        """End a call or a stream that the client has cancelled; it gets no answer."""
        if (connection := self._open.pop(json.dumps(request), None)) and connection.sock:
            connection.sock.shutdown(socket.SHUT_RDWR)

    def _answer(self, message: dict[str, Any], status: int, body: bytes) -> None:
        if not body or "id" not in message:
            return
        answer = json.loads(body)
        if "jsonrpc" not in answer:
            self._refuse(message, str(answer.get("error", f"The bridge answered {status}.")))
            return
        if message.get("method") == "initialize" and "result" in answer:
            self._version = str(answer["result"].get("protocolVersion", ""))
        self._write(answer)

    def _connect(self) -> http.client.HTTPConnection:
        """Connect to the bridge; start the daemon if it doesn't listen."""
        try:
            return self._connection()
        except (OSError, ValueError, KeyError):
            with self._starting:
                try:
                    return self._connection()
                except (OSError, ValueError, KeyError):
                    self._start_daemon()
                    return self._connection()

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(json.loads((self._home / "daemon.json").read_bytes())["bridge_url"])
        connection = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=CALL_SECONDS)
        connection.connect()
        return connection

    def _start_daemon(self) -> None:
        command = [sys.argv[0], "daemon", "start"]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=START_SECONDS, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BridgeDownError(f"The service is down; starting it failed: {error}. Type: service doctor") from None
        if done.returncode:
            raise BridgeDownError(f"The service is down; starting it failed: {done.stderr.strip()[:1000]}")

    def _refuse(self, message: dict[str, Any], sentence: str) -> None:
        """Answer with a sentence that reaches the model: as the result of a tool where there is one."""
        if "id" not in message:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message.get("method") == _CALL:
            answer["result"] = {"content": [{"type": "text", "text": sentence}], "isError": True}
        else:
            answer["error"] = {"code": -32000, "message": sentence}
        self._write(answer)

    def _write(self, answer: dict[str, Any]) -> None:
        with self._writing:
            sys.stdout.buffer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
            sys.stdout.buffer.flush()


def run() -> None:
    """Pass messages on until the client closes standard input."""
    token = os.environ.get(TOKEN, "")
    if not token:
        sys.stderr.write(f"error: {TOKEN} is not set\ntry: service mcp add CLIENT\n")
        sys.exit(2)
    home = Path(os.environ.get("SERVICE_HOME") or "~/.service").expanduser()
    passing = Passing(home, token)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in sys.stdin.buffer:
            if line.strip():
                pool.submit(passing.pass_on, line)
    os._exit(0)


def _part(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object's part that should be an object too."""
    part = holder.get(name)
    return part if isinstance(part, dict) else {}


def _plain(value: str) -> str:
    """Return a value that a header can hold."""
    return value.encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")
