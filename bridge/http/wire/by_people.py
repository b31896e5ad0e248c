"""Orders are for people and their programs: an agent is refused even with a valid token (ruling N5)."""

from collections.abc import Callable

from activities.runs.ancestry import Agent
from bridge.http.wire.call import Scope, call_of
from bridge.http.wire.off_loop import read
from bridge.machine.tcp_callers import CannotTellError, is_known
from bridge.machine.tcp_lookup import Address
from bridge.operations import people
from bridge.operations.service import Service

AgentAt = Callable[[Address | None, Address | None], Agent | None]
"""Finds the agent that calls, from the client's and the server's address."""

INSTEAD = "say in its result what is to be done, or ask by `human_questions`; then: service result check"
AGAIN = "call again, and keep the connection open until the answer is there"


def nobody_s(caller: Address | None, here: Address | None) -> Agent | None:
    """Find no agent: for calls that do not come over a local connection."""
    del caller, here
    return None


async def refuse_agents(service: Service, agent_at: AgentAt, scope: Scope, order: str) -> None:
    """Refuse an agent's order, naming the agent, and record it in the agent's tree."""
    ends = scope.get("client"), scope.get("server")
    if is_known(*ends):
        return
    try:
        found = await read(agent_at, *ends)
    except CannotTellError:
        why = "agents run on this machine, and it cannot be told whether one of them has called"
        raise people.UnknownCallerError(why, AGAIN) from None
    if found is not None:
        call_of(scope).by = f"{found}, with {call_of(scope).by}"
        await read(people.refuse, found, f"`{order}`", INSTEAD, service)
