"""The operations of `service daemon`: run, start and stop a home's processes with its settings, and show their
status.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from activities.store import job_rows
from bridge.machine import address, daemon_state
from bridge.machine.daemon_state import DaemonStatus
from bridge.machine.step_messages import Step, unheard
from bridge.operations.service import Service
from bridge.operations.settings import DAEMON_READS

if TYPE_CHECKING:
    from activities.settings.model import BridgeSection, Github
    from bridge.daemon.options import DaemonOptions


def run(service: Service, temporal_port: int | None, ui_port: int | None, *, strict_ports: bool) -> None:
    """Run all processes of the daemon in the foreground until a stop signal."""
    from bridge.daemon.foreground import run_foreground

    _require(service)
    run_foreground(service.home, _options(service, temporal_port, ui_port, strict_ports))


def start(
    service: Service,
    temporal_port: int | None = None,
    ui_port: int | None = None,
    *,
    strict_ports: bool = False,
    step: Step = unheard,
) -> DaemonStatus:
    """Start the daemon in the background, and return once all its processes work."""
    from bridge.daemon import background

    if not daemon_state.status(service.home).running:
        _require(service)
    return background.start(service.home, _options(service, temporal_port, ui_port, strict_ports), step)


def stop(service: Service, step: Step = unheard) -> bool:
    """Stop the daemon. Return False if it did not run."""
    from bridge.daemon import background

    return background.stop(service.home, step)


def status(service: Service) -> DaemonStatus:
    """Return the running processes, their addresses, and the service's health."""
    return daemon_state.status(service.home)


def preflight_failures(service: Service) -> int:
    """Count the coordinators whose delegations could not be routed; 0 while there is no store (spec: `service daemon
    status`).
    """
    has_store = service.settings.store.url or service.home.store.exists()
    return job_rows.count_preflight_failures(service.store) if has_store else 0


def _require(service: Service) -> None:
    """Check the requirements of a start. Raise an error that names what is missing."""
    from bridge.operations.home import cluster

    cluster.require(service)
    if service.settings.github.is_configured:
        from activities.github.credentials import credentials

        credentials(service.settings.github, os.environ)


def _options(service: Service, temporal_port: int | None, ui_port: int | None, strict_ports: bool) -> "DaemonOptions":
    """Build the daemon's options. Embed no server if the settings, the environment or a profile name a cluster."""
    from activities.temporal import external_config
    from bridge.daemon.options import DaemonOptions
    from workflows.temporal import search
    from workflows.temporal.calls import agents_queue
    from workflows.temporal.github_desk import pushing_queue, turns_queue

    wanted, host = service.settings.temporal, service.settings.host
    trees = wanted.task_queue
    options = DaemonOptions(
        temporal_port=wanted.port if temporal_port is None else temporal_port,
        ui_port=ui_port if ui_port is not None or "ui_port" not in wanted.model_fields_set else wanted.ui_port,
        strict_ports=strict_ports,
        namespace=wanted.namespace,
        encrypt=wanted.encrypt,
        search_attributes=tuple(search.NAMES.items()),
        worker_queues=((trees, "WORKFLOW"), (trees, "ACTIVITY"), (agents_queue(host), "ACTIVITY")),
        github_queues=((turns_queue(trees), "ACTIVITY"), (pushing_queue(trees, host), "ACTIVITY")),
        settings=service.reading.in_use(DAEMON_READS),
        own_store=not service.settings.store.url,
        **_bridge(service.settings.bridge),
        **_github(service.settings.github),
        **_commands(),
    )
    if external := external_config(service.settings):
        changes = {"embedded": False, "address": external["target_host"], "namespace": external["namespace"]}
        return options.model_copy(update=changes)
    return options


def _bridge(wanted: "BridgeSection") -> dict[str, Any]:
    """Return the daemon's options for the bridge. Refuse an address that other machines can reach, unless the settings
    allow it.
    """
    if not wanted.enabled:
        return {}
    where = address.choose_address(wanted, None, allow_remote=False)
    command = (sys.executable, "-P", "-m", "bridge.http")
    return {"bridge_command": command, "bridge_addr": where.host, "bridge_port": where.port, "bridge_url": wanted.url}


def _github(wanted: "Github") -> dict[str, Any]:
    """Return the daemon's options for the GitHub process, if an account is configured."""
    if not wanted.is_configured:
        return {}
    command = (sys.executable, "-P", "-m", "bridge.github")
    secrets = {"github_secret": wanted.token_env, "webhook_secret": wanted.webhook_secret_env}
    return {"github_command": command, **secrets}


def _commands() -> dict[str, Any]:
    """Return the daemon's options for the process that runs typed commands. Only on Linux: elsewhere it can't identify
    its callers.
    """
    if sys.platform != "linux":
        return {}
    return {"commands_command": (sys.executable, "-P", "-m", "cli.warm")}
