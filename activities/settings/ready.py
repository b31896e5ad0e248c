"""Files in the home in which a worker and a bridge record, once they work, their pid, address and settings."""

import contextlib
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from activities.runs.os_processes import identity
from activities.runs.regular_files import write_private
from activities.settings.home import Home
from activities.settings.in_use import SettingsInUse
from activities.settings.model import BridgeSection

BEAT_SECONDS = 10.0
"""Interval of beats."""

_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104
"""A listener on all addresses is reached by the loopback address on this machine."""


class Ready(BaseModel):
    """A process that works, or has worked, as it recorded itself."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    identity: str | None = None
    """Tells the process from a later one with its pid."""
    address: str | None = None
    settings: SettingsInUse | None = None

    @property
    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self.identity is not None and identity(self.pid) == self.identity


def say(path: Path, settings: SettingsInUse, address: str | None = None) -> None:
    """Record that this process works."""
    pid = os.getpid()
    write_private(
        path, Ready(pid=pid, identity=identity(pid), address=address, settings=settings).model_dump_json() + "\n"
    )


async def keep_beating(path: Path) -> None:
    """Touch the file periodically while this process's event loop runs: the daemon ends a process that stops doing so.

    A beat needs the event loop, the interpreter's lock and the home: a process without one of them is frozen.
    """
    import asyncio  # commands only read these files

    while True:
        with contextlib.suppress(OSError):
            os.utime(path)
        await asyncio.sleep(BEAT_SECONDS)


def beat_of(path: Path) -> int | None:
    """Return the time of the last beat in nanoseconds; None before the first beat."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def read(path: Path) -> Ready | None:
    """Read the last record; None if it is missing or can't be read."""
    try:
        return Ready.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def dashboard_url(home: Home, settings: BridgeSection) -> str:
    """Return the dashboard's URL from the settings, else where this home's bridge listens; empty if it does not run."""
    return settings.url or bridge_url(home)


def bridge_url(home: Home) -> str:
    """Return where this home's bridge listens; empty if it does not run."""
    bridge = read(home.bridge_ready)
    if bridge is None or not bridge.alive or not bridge.address:
        return ""
    host, _, port = bridge.address.rpartition(":")
    return f"http://{_HERE.get(host, host)}:{port}"


def pid_of(path: Path) -> int | None:
    """Return the pid in the last record."""
    record = read(path)
    return record.pid if record else None
