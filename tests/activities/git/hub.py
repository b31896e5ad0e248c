"""Repositories to fetch from, with pull requests as GitHub stores them: on disk, and over HTTP."""

import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.activities.git.conftest import run_git


def clone(hub: Path, where: Path) -> Path:
    """Clone the hub into a checkout."""
    run_git(hub.parent, "clone", "-q", str(hub), str(where))
    return where


def propose(hub: Path, number: int, text: str) -> str:
    """Make a pull request, or replace its head by an unrelated one. Return its commit."""
    blob = run_git(hub, "rev-parse", "HEAD^{tree}")
    head = run_git(hub, "commit-tree", "-p", "HEAD", "-m", text, blob)
    run_git(hub, "update-ref", f"refs/pull/{number}/head", head)
    return head


class _Handler(SimpleHTTPRequestHandler):
    """A file server that records the credentials it is sent, and requires the token if there is one."""

    server: "_Server"

    def do_GET(self) -> None:
        self.server.shown.append(self.headers.get("Authorization", ""))
        if self.server.moved_to:
            self.send_response(301)
            self.send_header("Location", f"{self.server.moved_to}{self.path}")
            self.end_headers()
        elif self.server.wanted and self.headers.get("Authorization") != self.server.wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="hub"')
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    shown: list[str]
    wanted: str
    moved_to: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def served(folder: Path, token: str = "", moved_to: str = "") -> Iterator[_Server]:
    """Serve the folder's repositories over HTTP."""
    for repository in folder.iterdir():
        run_git(repository, "update-server-info")
    server = _Server(("127.0.0.1", 0), lambda *its: _Handler(*its, directory=str(folder)))
    server.shown, server.moved_to = [], moved_to
    server.wanted = f"Basic {b64encode(f'x-access-token:{token}'.encode()).decode()}" if token else ""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
