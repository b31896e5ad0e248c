"""Which model and effort a child runs with (spec: model and effort resolution)."""

from workflows.contract.models import Delegation, Ephemeral
from workflows.policy.settings import RuntimeDefaults, TreeSettings
from workflows.tree.jobs import Worker


def model_of(delegation: Delegation, worker: Worker, settings: TreeSettings) -> str | None:
    """The delegation's, the worker's, the runtime's default; None leaves it to the runtime's own program."""
    return delegation.model or worker.model or _defaults(worker, settings).default_model


def effort_of(delegation: Delegation, worker: Worker, settings: TreeSettings) -> str | None:
    """The delegation's, the worker's, the runtime's default."""
    return delegation.effort or worker.effort or _defaults(worker, settings).default_effort


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


def _defaults(worker: Worker, settings: TreeSettings) -> RuntimeDefaults:
    return settings.runtimes.get(worker.runtime, RuntimeDefaults())
