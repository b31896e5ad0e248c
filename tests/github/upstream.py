"""An HTTP program behind the tests' own server: start, requests, end."""

import json
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.github.wire import Reply, Request
from tests.waiting import wait_for

PASSED_ON = ("authorization", "accept", "content-type", "user-agent", "x-github-api-version", "host")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Upstream:
    """One program on one port of 127.0.0.1; its output is kept for diagnosis."""

    def __init__(self, words: Sequence[str], port: int, asked: str) -> None:
        """Start the program, and wait until it answers `asked` in any way."""
        self.address = f"http://127.0.0.1:{port}"
        with tempfile.NamedTemporaryFile(prefix="upstream-", suffix=".log", delete=False) as out:
            self.output = Path(out.name)
            self._process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        self._client = httpx.Client(base_url=self.address, trust_env=False, timeout=60)
        try:
            wait_for(lambda: self._answers(asked), lambda: self.output.read_text())
        except BaseException:
            self.stop()
            raise

    def _answers(self, asked: str) -> bool:
        assert self._process.poll() is None, self.output.read_text()
        try:
            self._client.get(asked)
        except httpx.TransportError:
            return False
        return True

    def ask(self, request: Request) -> Reply:
        """Forward a request and return the answer."""
        sent = {name: value for name, value in request.headers.items() if name in PASSED_ON}
        query = dict(request.query)
        answer = self._client.request(request.method, request.path, params=query, headers=sent, content=request.body)
        kept = {name: value for name, value in answer.headers.items() if name in ("link", "location")}
        return Reply(answer.status_code, _read(answer.content), kept)

    def stop(self) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait()
        self.output.unlink(missing_ok=True)


def _read(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content
