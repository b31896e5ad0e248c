"""The options a daemon is started with."""

import sys

from pydantic import BaseModel, ConfigDict, Field

from activities.settings.in_use import SettingsInUse
from bridge.daemon.server import NAMESPACE, Queue
from bridge.machine.ports import LOOPBACK


class DaemonOptions(BaseModel):
    """Options of a daemon. Ports are preferences unless `strict_ports`; 0 takes any. `embedded=False` runs no
    server.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    temporal_port: int = Field(default=7233, ge=0, le=65_535)
    ui_port: int | None = None
    """No longer has an effect; setting it prints a notice."""
    strict_ports: bool = False
    embedded: bool = True
    own_store: bool = True
    """True if the store belongs to this home, so that no other host uses it."""
    address: str | None = None
    """The cluster to use when the server is not embedded; for display only: the worker reads its own settings."""
    namespace: str = NAMESPACE
    encrypt: bool = False
    """True if the bridge decrypts payloads for the web UI."""
    search_attributes: tuple[tuple[str, str], ...] = ()
    worker_queues: tuple[Queue, ...] = ()
    """The task queues that the worker polls."""
    github_queues: tuple[Queue, ...] = ()
    """The task queues that the GitHub process polls."""
    settings: SettingsInUse | None = None
    """The settings that these options were made from, for comparison with later settings (ruling K4)."""
    bridge_command: tuple[str, ...] = ()
    """The HTTP bridge's command without its address; empty runs none."""
    github_command: tuple[str, ...] = ()
    """The command of the GitHub process; empty runs none."""
    github_secret: str = ""
    """The name of the variable with the account's token, which only the GitHub process receives."""
    webhook_secret: str = ""
    """The name of the variable with the webhook's secret, which only the bridge receives."""
    commands_command: tuple[str, ...] = ()
    """The command of the process that runs typed commands; empty runs none."""
    bridge_addr: str = LOOPBACK
    bridge_url: str = ""
    """The address at which people reach the bridge, if it is not the one it listens on."""
    bridge_port: int = Field(default=8791, ge=0, le=65_535)
    worker_command: tuple[str, ...] = (sys.executable, "-P", "-m", "activities")
    """The worker's command. With `-P` Python does not import a folder in the current directory that is named like one
    of our packages.
    """
