"""What is known of a call from its first byte to its audit line."""

import secrets
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from bridge.machine.named_tokens import Scope as TokenScope
from workflows.model.orders import signed

Scope = MutableMapping[str, Any]
_KEY = "bridge.call"

CHANNEL = "bridge"
"""How what is said by a call reaches a tree; and who says it, where the operator's own token was shown."""


@dataclass
class Call:
    """One call; the gates and the route add what they find out."""

    request_id: str = field(default_factory=lambda: f"req-{secrets.token_hex(8)}")
    status: int = 0
    code: str | None = None
    """The error's, when it is one."""
    bytes_in: int = 0
    created: list[str] = field(default_factory=list)
    caller: str = ""
    """Who showed a token, a session or a signature that is right; nobody else has a line in the operator's audit."""
    token: str = ""
    """The name of the token that was shown; empty for the operator's own."""
    scope: TokenScope | None = None
    """What that token may do."""
    opens: Callable[[], bool] = lambda: True
    """Whether that token still opens the bridge: it may be taken back while a call waits."""
    by: str = ""
    """Who calls, as the audit tells it: a token, a person at the dashboard, GitHub."""

    @property
    def actor(self) -> str:
        """The name under which an order is recorded; where it was said is recorded beside it."""
        return self.token or CHANNEL

    @property
    def signed(self) -> str:
        """The same with the place, for what records who did it in words only."""
        return signed(self.token, CHANNEL) if self.token else CHANNEL


def call_of(scope: Scope) -> Call:
    """The call that a scope belongs to."""
    found: Call | None = scope.get(_KEY)
    if found is None:
        found = scope[_KEY] = Call()
    return found
