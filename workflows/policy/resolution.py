"""What a job runs with, and who runs it (spec: model and effort resolution)."""

from dataclasses import dataclass

from workflows.contract.models import Delegation, Ephemeral
from workflows.policy.settings import RuntimeDefaults, TreeSettings
from workflows.policy.timeouts import timeout_of
from workflows.tree.jobs import Worker


@dataclass(frozen=True)
class Means:
    """Which model a job is given, how much effort, how long."""

    model: str | None
    effort: str | None
    timeout_seconds: float | None


def means_of(asked: Means, worker: Worker, settings: TreeSettings) -> Means:
    """Every new job's, and nobody else decides it: what was asked for it, its worker's, its runtime's default.

    None leaves model and effort to the runtime's own program. A continuation is no new job: it goes on with its
    coordinator's. A root's time is what was asked for it, or unbounded: the defaults are those of child jobs.
    """
    defaults = settings.runtimes.get(worker.runtime, RuntimeDefaults())
    return Means(
        model=asked.model or worker.model or defaults.default_model,
        effort=asked.effort or worker.effort or defaults.default_effort,
        timeout_seconds=asked.timeout_seconds,
    )


def asked_of(delegation: Delegation, settings: TreeSettings) -> Means:
    """What a delegation asks for its job, with a child job's time (spec: timeout precedence)."""
    return Means(delegation.model, delegation.effort, timeout_of(delegation, settings.timeouts))


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
