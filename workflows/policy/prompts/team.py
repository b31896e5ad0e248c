"""The agents and programs that a coordinator may delegate to, as its prompt lists them."""

from collections.abc import Sequence
from dataclasses import dataclass

from workflows.contract.fences import inline
from workflows.contract.models import AutonomyPolicy
from workflows.model.workers import Worker

NOBODY = "There is no agent for this repository and no program for workers of your own: do the work yourself."
EPHEMERAL = (
    "Workers of your own (`ephemeral`) take one of these as `runtime`. A job that has to run builds or tests, as a "
    "check has, needs the policy beside it:"
)


@dataclass(frozen=True)
class Installed:
    """A runtime that works on this host."""

    runtime: str
    program: str
    model: str
    """Its model unless a delegation names another one; empty: the program's own."""
    builds_with: AutonomyPolicy
    """The least policy with which its program runs builds and tests."""


def render_team(agents: Sequence[Worker], runtimes: Sequence[Installed]) -> str:
    """List them by the names that a delegation takes."""
    parts = ["## Who you can delegate to"]
    if agents:
        parts += ["Agents, by the name that `agent` takes:", "\n".join(map(_agent, agents))]
    if runtimes:
        parts += [EPHEMERAL, "\n".join(map(_runtime, runtimes))]
    return "\n\n".join(parts if agents or runtimes else [*parts, NOBODY])


def _agent(worker: Worker) -> str:
    what = f": {inline(worker.role)}" if worker.role else ""
    actions = ", ".join(worker.capabilities)
    return f"- {inline(worker.name)} ({worker.runtime}; {actions}; {worker.autonomy_policy}){what}"


def _runtime(each: Installed) -> str:
    model = f", model {inline(each.model)}" if each.model else ""
    return f"- `{each.runtime}` ({each.program}{model}): `{each.builds_with}`"
