"""The largest possible values: every text at its limit (ruling B6)."""

from typing import Any

from tests.tree.simulator import delegation
from workflows.contract.models import AutonomyPolicy, Delegation, Ephemeral, Runtime
from workflows.contract.size_limits import BOUNDS, DELEGATIONS_BYTES, cut_to_bound, size
from workflows.model.workers import Worker

BLOB = 2 * 1024 * 1024
"""Maximum size of a payload for a server."""


def largest(text: str, name: str) -> str:
    """Repeat the text up to its limit."""
    return cut_to_bound(name, text * BOUNDS[name].characters)


def the_largest_leg(number: int, letter: str, room: int) -> Delegation:
    """Return a leg with every text at its limit, as far as the set has room."""
    worker = Ephemeral(runtime=Runtime.RUNTIME_C, role=largest(letter, "role"), model=largest(letter, "model"))
    leg = delegation(
        f"{number:02}".ljust(64, "x"),
        action="review",
        prompt="p" * 1_000,
        synthesis_rule="verify",
        phase=largest(letter, "phase"),
        effort=largest(letter, "effort"),
        worktree=f"{number:02}".ljust(200, "w"),
        retry=1,
        failure_policy="continue",
    ).model_copy(update={"agent": None, "ephemeral": worker})
    left = room - size(leg.model_dump(mode="json", exclude={"prompt"}))
    artifacts = [f"{place}".ljust(50, "a") for place in range(16)][: max(0, left // 60)]
    return leg.model_copy(update={"artifacts": tuple(artifacts)})


def the_largest_agent(name: str, letter: str) -> Worker:
    """Return the largest registered agent; its template is stored by digest."""
    return Worker(
        name=f"{name}".ljust(64, "n"),
        runtime="shell",
        command=("c" * BOUNDS["agent_command"].bytes,),
        model=largest(letter, "model"),
        effort=largest(letter, "effort"),
        role=largest(letter, "role"),
        template_digest="d" * 64,
        capabilities=("ask", "review", "implement"),
        autonomy_policy=AutonomyPolicy.DANGER_FULL_ACCESS,
    )


def the_largest_set(agent: Worker, letter: str, count: int) -> dict[str, Any]:
    """Return the largest delegation of a result: the maximum number of legs, each with a prompt just short enough."""
    room = DELEGATIONS_BYTES // count
    legs = []
    for number in range(count):
        leg = delegation(f"{number:03}".ljust(64, "x"), agent.name, "ask", prompt="p" * 1_024, retry=1)
        left = room - size(leg.model_dump(mode="json", exclude={"prompt"}))
        labels = {"phase": "phase", "model": "model", "effort": "effort", "fingerprint": "fingerprint"}
        for field, bound in labels.items():
            text = cut_to_bound(bound, f"{number:03}" + largest(letter, bound))
            if field != "fingerprint" and size(text) <= left:
                leg, left = leg.model_copy(update={field: text}), left - size(text)
        legs.append(leg)
    return {"delegations": tuple(legs), "agents": (agent,), "summary": letter * 2_000, "reason": letter * 2_000}
