"""The agents and programs that a coordinator may delegate to, as listed in its prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

from workflows.contract.models import AutonomyPolicy
from workflows.model.workers import Worker
from workflows.text.fences import inline

_ORDER = list(AutonomyPolicy)
WHEN = (
    "You need not delegate: do yourself what you can do well. Delegate what gains by it: parts that can run side by"
    " side, what another agent is for, a check by somebody who did not do the work. With `delegations` your result is"
    " not the end, and `approved` is a fine decision: you are asked again when they are over."
)
NOBODY = "There is no agent for this repository and no program for workers of your own: do the work yourself."
EPHEMERAL = (
    "Workers of your own (`ephemeral`) take one of these as `runtime`. A job that has to run builds or tests, as a "
    "check has, needs the policy beside it:"
)


@dataclass(frozen=True)
class Installed:
    """A runtime that is available on this host."""

    runtime: str
    program: str
    model: str
    """Model unless a delegation names another; empty for the program's default."""
    builds_with: AutonomyPolicy
    """The least policy with which its program can run builds and tests."""


def render_team(agents: Sequence[Worker], runtimes: Sequence[Installed]) -> str:
    """List agents and runtimes by the names that a delegation accepts."""
    parts = ["## Who you can delegate to", WHEN]
    builds = {each.runtime: each.builds_with for each in runtimes}
    if agents:
        listed = "\n".join(_agent(each, builds.get(each.runtime)) for each in agents)
        parts += ["Agents, by the name that `agent` takes:", listed]
    if runtimes:
        parts += [EPHEMERAL, "\n".join(map(_runtime, runtimes))]
    return "\n\n".join(parts if agents or runtimes else [parts[0], NOBODY])


def _agent(worker: Worker, builds_with: AutonomyPolicy | None) -> str:
    what = f": {inline(worker.role)}" if worker.role else ""
    facts = [worker.runtime, ", ".join(worker.capabilities), worker.autonomy_policy]
    if builds_with and _ORDER.index(worker.autonomy_policy) < _ORDER.index(builds_with):
        facts.append("runs no builds or tests")
    return f"- {inline(worker.name)} ({'; '.join(facts)}){what}"


def _runtime(each: Installed) -> str:
    model = f", model {inline(each.model)}" if each.model else ""
    return f"- `{each.runtime}` ({each.program}{model}): `{each.builds_with}`"
