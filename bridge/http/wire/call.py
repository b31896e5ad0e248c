"""The context of one HTTP call, which the gates, the route and the audit share."""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from bridge.machine.token_scopes import TokenScope
from workflows.model.orders import signature

Scope = MutableMapping[str, Any]
_KEY = "bridge.call"

CHANNEL = "bridge"
"""The channel of orders that come over HTTP; also the actor, for calls with the operator's own token."""


async def _always() -> bool:
    return True


@dataclass
class Call:
    """One call; the gates and the route fill it in."""

    request_id: str = field(default_factory=lambda: f"req-{secrets.token_hex(8)}")
    status: int = 0
    code: str | None = None
    """The code of the error, if the call failed."""
    bytes_in: int = 0
    created: list[str] = field(default_factory=list)
    caller: str = ""
    """The owner of a valid token, session or signature; "" for calls without one, which are not in the operator's audit
    log.
    """
    token: str = ""
    """The name of the token; empty for the operator's own."""
    scope: TokenScope | None = None
    """The token's permission."""
    opens: Callable[[], Awaitable[bool]] = _always
    """Returns whether the token is still valid, since it may be revoked while a call waits."""
    channel: str = CHANNEL
    """The channel of its orders."""
    program: str = ""
    """The program through which a call by MCP comes, in its own words."""
    by: str = ""
    """The caller's name in the audit log: a token, a person at the dashboard, or GitHub."""

    @property
    def actor(self) -> str:
        """The name under which a call's order is recorded, beside its channel."""
        name = self.token or CHANNEL
        return f"{name} through {self.program}" if self.program else name

    @property
    def actor_in_words(self) -> str:
        """The actor's name with the channel, for records that store both as one text."""
        return signature(self.actor, self.channel) if self.actor != self.channel else self.channel


def call_of(scope: Scope) -> Call:
    """Return the call of a scope, created on first use."""
    call: Call | None = scope.get(_KEY)
    if call is None:
        call = scope[_KEY] = Call()
    return call
