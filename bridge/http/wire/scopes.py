"""The token scope each endpoint requires, declared in the OpenAPI document too (ruling N5)."""

from collections.abc import Mapping
from typing import Any

from bridge.http.wire.call import Call
from bridge.http.wire.errors import ForbiddenScopeError
from bridge.machine.named_tokens import Scope

FREE: dict[str, Any] = {"security": []}
"""`openapi_extra` of an endpoint without a token."""


def needs(scope: Scope) -> dict[str, Any]:
    """Return the `openapi_extra` of an endpoint that requires a scope."""
    return {"security": [{"bearer": [scope.value]}]}


def declared(extra: Mapping[str, Any] | None) -> Scope | None:
    """Return the scope an endpoint declares, None for a free one. Raise ValueError if it declares nothing."""
    if extra is None or "security" not in extra:
        raise ValueError("an endpoint must declare its scope: openapi_extra=needs(Scope.READ)")
    return Scope(extra["security"][0]["bearer"][0]) if extra["security"] else None


def check_scope(call: Call, needed: Scope) -> None:
    """Refuse a token without the needed scope, and name that scope."""
    if call.scope is None or not call.scope.covers(needed):
        whose = f"the token {call.token} has {call.scope}" if call.scope else "none was shown"
        add = f"service bridge token add NAME --scope {needed}"
        raise ForbiddenScopeError(f"this takes a token of scope {needed}, and {whose}", add)
