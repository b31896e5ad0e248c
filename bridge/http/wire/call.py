"""What is known of a call from its first byte to its audit line."""

import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

Scope = MutableMapping[str, Any]
_KEY = "bridge.call"

CHANNEL = "bridge"
"""How what is said by a call reaches a tree; and, as a token has no name, who says it."""


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


def call_of(scope: Scope) -> Call:
    """The call that a scope belongs to."""
    found: Call | None = scope.get(_KEY)
    if found is None:
        found = scope[_KEY] = Call()
    return found
