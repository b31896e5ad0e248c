"""Dashboard sessions: begun by a one-time link, carried by a cookie that the bridge signs (ruling M6).

Nothing is stored: a cookie is valid for a week, as long as the token that signed it is in force.
"""

import base64
import binascii
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256

from bridge.http.gates.gate import header
from bridge.http.wire.call import Scope
from bridge.machine import dashboard_link
from bridge.machine.token import Token
from bridge.operations.service import Service

SECONDS = 7 * 86_400


@dataclass(frozen=True)
class DashboardSession:
    """One browser of one person."""

    key: str
    actor: str
    """The name under which this person's orders are recorded."""
    form_token: str
    """CSRF token, contained in every form: a page of another site cannot know it."""


class Sessions:
    """Begins sessions, and finds the session of a request."""

    def __init__(self, service: Service) -> None:
        self._home = service.home
        self._token = Token(service.home.bridge_token)
        # Browsers send a host's cookies to all its ports: two bridges on one machine must not share a name.
        self.cookie = f"service-{sha256(str(service.home.root).encode()).hexdigest()[:8]}"

    def begin(self, code: str) -> str | None:
        """Return the `Set-Cookie` of a new session; None if the link is not valid any more."""
        actor = dashboard_link.take(self._home, code)
        if actor is None:
            return None
        content = json.dumps({"key": secrets.token_hex(8), "actor": actor, "since": int(time.time())}).encode()
        value = f"{_text(content)}.{_text(self._signature(b'session', content))}"
        return f"{self.cookie}={value}; Path=/ui; Max-Age={SECONDS}; HttpOnly; SameSite=Strict"

    def of(self, scope: Scope) -> DashboardSession | None:
        """Return the session of a request, from its cookie; None without a cookie that the bridge has signed."""
        pairs = (pair.strip().partition("=") for pair in (header(scope, b"cookie") or "").split(";"))
        value = next((value for name, _, value in pairs if name == self.cookie), "")
        content_text, _, signature = value.partition(".")
        try:
            content, shown = _bytes(content_text), _bytes(signature)
        except (ValueError, binascii.Error):
            return None
        if not content or not hmac.compare_digest(self._signature(b"session", content), shown):
            return None
        session = json.loads(content)
        if session["since"] + SECONDS < time.time():
            return None
        form_token = _text(self._signature(b"form", session["key"].encode()))
        return DashboardSession(session["key"], session["actor"], form_token)

    def _signature(self, purpose: bytes, of: bytes) -> bytes:
        """Sign a value. Without a token the signature is random, so that no cookie matches it."""
        return self._token.signature(b"dashboard " + purpose + b"\0" + of) or secrets.token_bytes(32)


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
