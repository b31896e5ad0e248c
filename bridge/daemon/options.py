"""What a daemon is started with."""

import sys

from pydantic import BaseModel, ConfigDict, Field

from activities.settings.reading import Told
from bridge.daemon.server import NAMESPACE
from bridge.machine.ports import LOOPBACK


class DaemonOptions(BaseModel):
    """Ports are wishes unless `strict_ports`; 0 takes any. `embedded=False` runs no server of our own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temporal_port: int = Field(default=7233, ge=0, le=65_535)
    ui_port: int = Field(default=8233, ge=0, le=65_535)
    strict_ports: bool = False
    embedded: bool = True
    own_store: bool = True
    """Whether the store is the home's own: no other host works with it."""
    address: str | None = None
    """The cluster that is used when the server is not embedded; only to be shown: the worker reads its own settings."""
    namespace: str = NAMESPACE
    encrypt: bool = False
    """Whether the web UI has payloads decrypted by the bridge."""
    search_attributes: tuple[tuple[str, str], ...] = ()
    settings: Told | None = None
    """What was read to know all this; others compare it with what the file says later (ruling K4)."""
    bridge_command: tuple[str, ...] = ()
    """The HTTP bridge, but for its address; empty runs none."""
    github_command: tuple[str, ...] = ()
    """The process that speaks to GitHub; empty runs none."""
    github_secret: str = ""
    """The variable with the account's token: no other member is handed it."""
    webhook_secret: str = ""
    """The variable with the webhook's secret: no member but the bridge is handed it."""
    commands_command: tuple[str, ...] = ()
    """The process that runs the commands that are typed; empty runs none."""
    bridge_addr: str = LOOPBACK
    bridge_port: int = Field(default=8791, ge=0, le=65_535)
    worker_command: tuple[str, ...] = (sys.executable, "-P", "-m", "activities.worker")
    """`-P`: a folder named like one of our packages, where somebody types a command, must not be taken for ours."""
