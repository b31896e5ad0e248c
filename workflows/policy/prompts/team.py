"""The section on delegating in a coordinator's prompt: when to delegate, to whom, how to write a leg, and this tree's
limits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workflows.contract.models import Action, AutonomyPolicy, Tier
from workflows.contract.wording import TIERS
from workflows.model.briefs import BudgetLine
from workflows.model.workers import Worker
from workflows.text.quoted_data import inline

_ORDER = list(AutonomyPolicy)
_OWN = {
    Action.ASK: "answer yourself what you can answer by reading",
    Action.REVIEW: "judge yourself what you can judge by reading",
    Action.IMPLEMENT: "do yourself what you can do well",
}
_READER = " What you write yourself is thrown away: a goal that changes files needs a leg with `implement`."
READS_ONLY = (
    " This task only reads, because whoever started it may only ask: delegate `ask` and `review`, never `implement`,"
    " and say in your result what is to be changed."
)
_WHEN = """\
You need not delegate: {own}. Delegate what gains by it: parts that can run side by side, what another agent is for, a \
check by somebody who did not do the work.{reader} A result with `delegations` is not the end: when all of them have \
ended you are asked again, with their outcomes and their work."""
_NOTE = " Until then `approved` will do as its decision."
_HOW = """\
A leg sees the goal, the repository, its own prompt and what its `deps` came to, and nothing else of yours. So its \
prompt says what to change and where, what you have found out and ruled out, and how to tell that it is done: the \
commands to run, and what they should show. Legs that run at once must not change the same files. Let one leg check \
the whole: an agent that can run the tests and did none of the work. Give it the goal and the commands, not opinions.

A leg that fails blocks the task, and you are not asked. With `"failure_policy": "escalate"` you are told every \
outcome, and decide. A leg whose `deps` conflict blocks it in any case: where legs might change the same file after \
all, put the check of both into your next set."""
NOBODY = "There is no agent for this repository and no program for workers of your own: do the work yourself."
_AGENTS = "Agents, by the name that `agent` takes:"
_EPHEMERAL = (
    "Workers of your own (`ephemeral`) take one of these as `runtime`. A job that has to run builds or tests, as a "
    "check has, needs the policy beside it:"
)
_CASCADE = (
    "`model` takes one of these names. Start with the cheapest that can do the work; issue what ended blocked or failed"
    " (or a quorum that was not met) once more with a deep one. Without `model` the default applies, which is enough"
    f" for most work. {'; '.join(f'{tier}: {what}' for tier, what in TIERS.items() if tier is not Tier.STANDARD)}."
)
_NO_MODELS = "Leave `model` out: no other models are known here."


@dataclass(frozen=True)
class Installed:
    """A runtime that is available on this host."""

    runtime: str
    program: str
    model: str
    """The model if a delegation names none; empty for the program's default."""
    builds_with: AutonomyPolicy
    """The least permissive policy with which the program can run builds and tests."""
    tiers: Mapping[str, str] = field(default_factory=dict)
    """The models that the runtime has for each tier."""


def render_team(
    agents: Sequence[Worker],
    runtimes: Sequence[Installed],
    action: Action,
    budget: BudgetLine | None = None,
    *,
    judged: bool = False,
    read_only: bool = False,
    corrects: bool = False,
) -> str:
    """Explain how to delegate, and list agents and runtimes by the names that a delegation accepts.

    A job is `judged` if its own decision counts for a rule. A job that only `corrects` its set gets just the names and
    the limits.
    """
    parts = ["## Delegating"]
    if not agents and not runtimes:
        return "\n\n".join([*parts, NOBODY])
    reader = READS_ONLY if read_only else "" if action is Action.IMPLEMENT else _READER
    when = _WHEN.format(own=_OWN[action], reader=reader)
    parts += [] if corrects else [f"{when}{'' if judged else _NOTE}", _HOW]
    parts += [_limits(budget)] if budget else []
    builds = {each.runtime: each.builds_with for each in runtimes}
    if agents:
        parts += [_AGENTS, "\n".join(_agent(worker, builds.get(worker.runtime)) for worker in agents)]
    if runtimes:
        tiers = any(each.tiers for each in runtimes)
        parts += [_EPHEMERAL, "\n".join(map(_runtime, runtimes))]
        parts += [] if corrects else [_CASCADE if tiers else _NO_MODELS]
    return "\n\n".join(parts)


def _limits(budget: BudgetLine) -> str:
    """Return how much more this tree may do, with its numbers."""
    width = f"{budget.width} delegations in one result, " if budget.width else ""
    jobs = max(0, budget.jobs_cap - budget.jobs)
    levels = budget.depth_cap - budget.depth
    return (
        f"Limits of this task: {width}{jobs} more jobs in all, {levels} more levels of delegation. The job in which you"
        " are asked again counts too. A set over a limit is not run, and ends the task."
    )


def _agent(worker: Worker, builds_with: AutonomyPolicy | None) -> str:
    what = f": {inline(worker.role)}" if worker.role else ""
    facts = [worker.runtime, ", ".join(worker.capabilities), _abilities(worker, builds_with)]
    return f"- {inline(worker.name)} ({'; '.join(facts)}){what}"


def _abilities(worker: Worker, builds_with: AutonomyPolicy | None) -> str:
    policy = worker.autonomy_policy
    builds = builds_with is None or _ORDER.index(policy) >= _ORDER.index(builds_with)
    return "runs builds and tests" if builds else "runs no builds or tests"


def _runtime(installed: Installed) -> str:
    model = f", model {inline(installed.model)}" if installed.model else ""
    tiers = ", ".join(f"{tier} {inline(name)}" for tier, name in installed.tiers.items())
    models = f"; models: {tiers}" if tiers else ""
    return f"- `{installed.runtime}` ({installed.program}{model}): `{installed.builds_with}`{models}"
