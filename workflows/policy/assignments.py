"""Who runs a job and what with: every job's assignment is completed here (spec: model and effort resolution)."""

from workflows.contract.models import Delegation, Ephemeral
from workflows.model.settings import RuntimeDefaults, TreeSettings
from workflows.model.texts import Text
from workflows.model.workers import Assignment, Worker
from workflows.policy.timeouts import timeout_of


def resolved(asked: Assignment, settings: TreeSettings) -> Assignment:
    """Model and effort of every new job, and nobody else decides them: its own, its worker's, its runtime's default.

    None leaves them to the runtime's own program. A continuation is no new job: it goes on with its coordinator's.
    """
    worker = asked.worker
    defaults = settings.runtimes.get(worker.runtime, RuntimeDefaults())
    means = {
        "model": asked.model or worker.model or defaults.default_model,
        "effort": asked.effort or worker.effort or defaults.default_effort,
    }
    return asked.model_copy(update=means)


def delegated(
    delegation: Delegation, agents: tuple[Worker, ...], parent: Assignment, settings: TreeSettings, prompt: Text
) -> Assignment:
    """What a leg that passed preflight is to do, with a child job's time (spec: timeout precedence)."""
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
    return resolved(asked, settings)


def worker_of(delegation: Delegation, agents: tuple[Worker, ...]) -> Worker:
    """Who runs a leg that passed preflight, frozen now."""
    spec = delegation.ephemeral
    if spec is None:
        return next(agent for agent in agents if agent.name == delegation.agent)
    return ephemeral_worker(delegation.id, spec)


def ephemeral_worker(name: str, spec: Ephemeral) -> Worker:
    """A throwaway worker, called by its role or by the leg or stage it is for."""
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
