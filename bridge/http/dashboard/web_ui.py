"""Temporal's web UI for people with a session (ruling N1): the embedded server's, which has no gates of its own.

It needs no WebSocket. Its answers are small enough to be passed on whole. The program has a flag for a path below which
it is served (`--ui-public-path`), with which it renders no Markdown; so its page is rewritten here.
"""

import re
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from bridge.http.gates.size import GENERAL, read_body
from bridge.http.wire import stream_limit
from bridge.http.wire.errors import NotReadyError, TooLargeError
from bridge.http.wire.stream_limit import HeldOpen
from bridge.machine.web_ui import PATH
from workflows.model.errors import NotFoundError

if TYPE_CHECKING:
    import httpx

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PER_MINUTE = 6000
"""The rate limit of one session: opening a page loads some hundred scripts."""

SECONDS = 90
"""The web UI waits up to a minute for news of a workflow."""

_ASKED = ("accept", "content-type", "x-csrf-token", "caller-type", "x-namespace")
_ANSWERED = ("content-type", "content-security-policy", "set-cookie", "cache-control")
"""The headers that are passed on; of the cookies only the program's own."""

_CSRF = "_csrf"
_OWN_POLICY = re.compile(rb'<meta http-equiv="content-security-policy"[^>]*>')
_PLACES = ((b'"/_app/', f'"{PATH}/_app/'.encode()), (b'base: ""', f'base: "{PATH}"'.encode()))
"""What the page says of where it is served, and what it is made to say."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class WebUi:
    """The embedded server's web UI, at the address that the daemon told this process; empty without a web UI."""

    def __init__(self, listens: str) -> None:
        self._at, self._held = listens, HeldOpen(stream_limit.MOST)
        self._client: httpx.AsyncClient | None = None

    async def answer(self, request: Request) -> Response:
        """Pass a request of a session on, and return the answer with a policy for its scripts."""
        if not self._at:
            raise NotFoundError("no embedded Temporal server belongs to this bridge", "service daemon status")
        with self._held.wait(request.scope):
            body = await read_body(request.scope, request.receive, GENERAL)
            if body is None:
                raise TooLargeError("request body too large")
            answer = await self._ask(request, body)
        content = answer.content
        if answer.headers.get("content-type", "").startswith("text/html"):
            content = _placed_here(content)
        response = Response(content, answer.status_code)
        for name, value in answer.headers.multi_items():
            if name in _ANSWERED:
                response.headers.append(name, value)
        if content != answer.content or "content-security-policy" not in response.headers:
            response.headers["content-security-policy"] = policy(content)
        if "/_app/immutable/" in request.url.path and answer.is_success:
            response.headers["cache-control"] = "private, max-age=31536000, immutable"
        return response

    async def _ask(self, request: Request, body: bytes) -> "httpx.Response":
        import httpx

        if self._client is None:
            free = httpx.Limits(max_connections=None)
            self._client = httpx.AsyncClient(trust_env=False, timeout=SECONDS, limits=free)
        headers = {name: request.headers[name] for name in _ASKED if name in request.headers}
        if _CSRF in request.cookies:
            headers["cookie"] = f"{_CSRF}={request.cookies[_CSRF]}"
        path = request.scope["raw_path"].removeprefix(PATH.encode()) or b"/"
        target = path + b"?" + request.scope["query_string"]
        try:
            url = httpx.URL(f"http://{self._at}").copy_with(raw_path=target)
            return await self._client.request(request.method, url, headers=headers, content=body)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise NotReadyError("Temporal's web UI does not answer") from None


def _placed_here(page: bytes) -> bytes:
    """Rewrite the web UI's page for its place, without its own policy, which names the digest of what is rewritten."""
    for original, here in _PLACES:
        page = page.replace(original, here)
    return _OWN_POLICY.sub(b"", page)


def policy(page: bytes) -> str:
    """Return the policy under which the web UI works: scripts of its own files, and those written in its page."""
    written = "".join(f" 'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in _INLINE.findall(page))
    return (
        f"default-src 'none'; script-src 'self'{written}; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src 'self' data:; font-src 'self' data:; frame-src 'self'; manifest-src 'self'; form-action 'self'; "
        "frame-ancestors 'self'; base-uri 'none'"
    )
