"""Authorisation of calls: each endpoint requires a token scope, and agents may not give orders (ruling N5)."""

from collections.abc import Callable, Mapping
from typing import Any

from activities.runs.ancestry import AgentProcess
from bridge.http.wire.call import Call, Scope, call_of
from bridge.http.wire.errors import ForbiddenScopeError
from bridge.http.wire.thread_pools import read
from bridge.machine.tcp_callers import CannotTellError, SocketAddress, is_known
from bridge.machine.token_scopes import TokenScope
from bridge.operations import refused_agents
from bridge.operations.service import Service

FREE: dict[str, Any] = {"security": []}
"""`openapi_extra` of an endpoint without a token."""

AgentAt = Callable[[SocketAddress | None, SocketAddress | None], AgentProcess | None]
"""Finds the agent that calls, from the client's and the server's address."""

INSTEAD = "say in its result what is to be done, or ask by `human_questions`; then: service result check"
AGAIN = "call again, and keep the connection open until the answer is there"


def needs(scope: TokenScope) -> dict[str, Any]:
    """Return the `openapi_extra` of an endpoint that requires a scope."""
    return {"security": [{"bearer": [scope.value]}]}


def declared_scope(extra: Mapping[str, Any] | None) -> TokenScope | None:
    """Return the scope that an endpoint declares; None if it is declared free. Raise ValueError if it declares
    neither.
    """
    if extra is None or "security" not in extra:
        raise ValueError("an endpoint must declare its scope: openapi_extra=needs(Scope.READ)")
    return TokenScope(extra["security"][0]["bearer"][0]) if extra["security"] else None


def check_scope(call: Call, needed: TokenScope) -> None:
    """Refuse a token without the needed scope, and name that scope."""
    if call.scope is None or not call.scope.covers(needed):
        whose = f"the token {call.token} has {call.scope}" if call.scope else "none was shown"
        add = f"service bridge token add NAME --scope {needed}"
        raise ForbiddenScopeError(f"this takes a token of scope {needed}, and {whose}", add)


def no_agent(caller: SocketAddress | None, here: SocketAddress | None) -> AgentProcess | None:
    """Return None: the default where callers are not checked for being agents."""
    del caller, here
    return None


async def refuse_agents(service: Service, agent_at: AgentAt, scope: Scope, order: str) -> None:
    """Refuse an agent's order, naming the agent, and record it in the agent's tree."""
    ends = scope.get("client"), scope.get("server")
    if is_known(*ends):
        return
    try:
        agent = await read(agent_at, *ends)
    except CannotTellError:
        why = "agents run on this machine, and the caller may be one of them"
        raise refused_agents.UnknownCallerError(why, AGAIN) from None
    if agent is not None:
        call_of(scope).by = f"{agent}, with {call_of(scope).by}"
        await read(refused_agents.refuse, agent, f"`{order}`", INSTEAD, service)
