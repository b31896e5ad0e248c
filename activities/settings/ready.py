"""What a worker and a bridge say in the home once they work: who they are, where they listen, what they have read."""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from activities.runs.os_processes import identity
from activities.runs.regular_files import write_private
from activities.settings.home import Home
from activities.settings.model import BridgeSection
from activities.settings.reading import Told

_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104
"""Who listens on every address is reached on this machine by its own."""


class Ready(BaseModel):
    """A process that works, or did."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    identity: str | None = None
    """The same number is given to another process one day."""
    address: str | None = None
    settings: Told | None = None

    @property
    def alive(self) -> bool:
        """It still runs."""
        return self.identity is not None and identity(self.pid) == self.identity


def say(path: Path, settings: Told, address: str | None = None) -> None:
    """Say that this process works."""
    pid = os.getpid()
    write_private(
        path, Ready(pid=pid, identity=identity(pid), address=address, settings=settings).model_dump_json() + "\n"
    )


def read(path: Path) -> Ready | None:
    """What was said last; None when nothing was, or it cannot be read."""
    try:
        return Ready.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def dashboard_url(home: Home, settings: BridgeSection) -> str:
    """Where people reach the dashboard: what the settings say, else where the bridge of this home listens. Or empty."""
    if settings.url:
        return settings.url
    bridge = read(home.bridge_ready)
    if bridge is None or not bridge.alive or not bridge.address:
        return ""
    host, _, port = bridge.address.rpartition(":")
    return f"http://{_HERE.get(host, host)}:{port}"


def pid_of(path: Path) -> int | None:
    """The process that said it last."""
    said = read(path)
    return said.pid if said else None
