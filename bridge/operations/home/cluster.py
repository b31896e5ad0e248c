"""Using one's own Temporal cluster: creating what the service needs in it, and checking for it before a start."""

import asyncio
from datetime import timedelta

from activities import cluster
from activities.cluster import Made, NotPreparedError
from activities.temporal import connect, connect_config, connect_to_look, external_config
from bridge.machine import daemon_state
from bridge.machine.step_messages import Step, unheard
from bridge.operations.health import doctor
from bridge.operations.service import Service
from workflows.model.errors import Commands, RefusedError, UsageError
from workflows.text.durations import DurationError, parse_duration

__all__ = ["Made", "init", "lacking", "require"]


def init(service: Service, retention: str | None, step: Step = unheard) -> Made:
    """Create namespace, retention and search attributes, as far as the server permits."""
    if external_config(service.settings) is None:
        raise RefusedError(
            "no server is named, so the daemon runs one of its own and prepares it itself",
            "service daemon start  (or, for a cluster of your own: export TEMPORAL_ADDRESS=host:7233)",
        )
    length = None
    if retention:
        try:
            length = timedelta(seconds=parse_duration(retention))
        except DurationError as error:
            raise UsageError(f"--retention {error}", "service cluster init --retention 30d") from None
        if length < timedelta(days=1):
            raise UsageError("--retention must be a day at least", "service cluster init --retention 30d")

    async def make() -> Made:
        step(f"waiting for Temporal at {connect_config(service.home, service.settings)['target_host']}")
        return await cluster.make(await connect(service.home, service.settings), length, step)

    return asyncio.run(make())


def lacking(service: Service) -> tuple[str, ...]:
    """Return a sentence for each thing that one's own Temporal server lacks. Change nothing, and check nothing while
    the daemon runs.
    """
    if external_config(service.settings) is None or daemon_state.status(service.home).running:
        return ()

    async def look() -> tuple[str, ...]:
        return (await cluster.survey(await connect_to_look(service.home, service.settings))).faults

    return asyncio.run(look())


def require(service: Service) -> None:
    """Raise unless store and server are complete; the error lists every fault with its command."""
    says, fixes = doctor.lacking(service)
    if says:
        raise NotPreparedError(says, Commands(*fixes))
