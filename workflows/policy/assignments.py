"""Assignments: choosing worker, model, effort and timeout of each job (spec: model and effort resolution, timeouts)."""

from workflows.contract.models import Action, Delegation, Ephemeral
from workflows.model.long_texts import Text
from workflows.model.settings import RuntimeDefaults, Timeouts, TreeSettings
from workflows.model.workers import Assignment, Worker
from workflows.policy.tiers import model_of
from workflows.text.durations import DurationError, parse_duration

_PHASES = {
    "plan": "plan",
    "implement": "implement",
    "review": "review",
    "review-prep": "review",
    "review-dispatch": "review",
    "gate": "gate",
    "repair": "repair",
    "continue": "repair",
}


def resolve(asked: Assignment, settings: TreeSettings) -> Assignment:
    """Resolve the model and the effort of a new job: its own, its worker's, or its runtime's default. This is the only
    place that does.

    None leaves the choice to the runtime's program. A continuation is not a new job: it keeps the values of its
    coordinator.
    """
    worker = asked.worker
    defaults = settings.runtimes.get(worker.runtime, RuntimeDefaults())
    means = {
        "model": model_of(asked.model or worker.model, defaults),
        "effort": asked.effort or worker.effort or defaults.default_effort,
    }
    return asked.model_copy(update=means)


def leg_assignment(
    delegation: Delegation, agents: tuple[Worker, ...], parent: Assignment, settings: TreeSettings, prompt: Text
) -> Assignment:
    """Return the assignment of a leg that passed preflight, with a child job's timeout (spec: timeout precedence)."""
    asked = Assignment(
        worker=worker_of(delegation, agents),
        action=delegation.action,
        prompt=prompt,
        model=delegation.model,
        effort=delegation.effort,
        phase=delegation.phase,
        timeout_seconds=timeout_of(delegation, settings.timeouts),
        pull_request=parent.pull_request,
        issue=parent.issue,
        github=parent.github,
        web=parent.web,
        about=parent.about,
        into=parent.into,
        head=parent.head,
        base=parent.base,
        task_branch=parent.task_branch,
    )
    return resolve(asked, settings)


def worker_of(delegation: Delegation, agents: tuple[Worker, ...]) -> Worker:
    """Return the worker of a leg that passed preflight, as registered now."""
    spec = delegation.ephemeral
    if spec is None:
        return next(agent for agent in agents if agent.name == delegation.agent)
    return ephemeral_worker(delegation.id, spec)


def ephemeral_worker(name: str, spec: Ephemeral) -> Worker:
    """Return a throwaway worker. It is named after its role, or else after its leg or stage."""
    return Worker(
        name=spec.role or name,
        runtime=spec.runtime,
        ephemeral=True,
        model=spec.model,
        effort=spec.effort,
        template=spec.template,
        role=spec.role,
        capabilities=spec.capabilities,
        autonomy_policy=spec.autonomy_policy,
    )


def timeout_of(delegation: Delegation, timeouts: Timeouts) -> float | None:
    """Return the first timeout that is set: the delegation's own, its phase's, its action's, the general default."""
    in_order = (
        seconds(delegation.timeout),
        _default(delegation.phase or "", timeouts),
        _default(delegation.action.value, timeouts),
        timeouts.default_delegation_timeout,
    )
    return next((each for each in in_order if each is not None), None)


def timeout_of_root(asked: Assignment, timeouts: Timeouts) -> float | None:
    """Return the root job's own timeout. Without one, return the timeout of phase `plan` for an `ask` job that may
    delegate, else None.
    """
    coordinates = asked.action is Action.ASK and not asked.worker.ephemeral
    return asked.timeout_seconds or (timeouts.default_plan_timeout if coordinates else None)


def _default(phase: str, timeouts: Timeouts) -> float | None:
    match _PHASES.get(phase):
        case "plan":
            return timeouts.default_plan_timeout
        case "implement":
            return timeouts.default_implement_timeout
        case "review":
            return timeouts.default_review_timeout
        case "gate":
            return timeouts.default_gate_timeout
        case "repair":
            return timeouts.default_repair_timeout
        case _:
            return None


def seconds(duration: str | None) -> float | None:
    """Convert a validated duration to seconds; None if it is missing or zero (ruling A10)."""
    try:
        return parse_duration(duration or "") or None
    except DurationError:
        return None
