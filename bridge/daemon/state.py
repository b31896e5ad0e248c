"""What a daemon says about itself: the file that commands read to know whether, where and how well it runs."""

import json
import logging
import os
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

log = logging.getLogger(__name__)


class Phase(StrEnum):
    """Where the group stands."""

    STARTING = "starting"
    RUNNING = "running"
    DEGRADED = "degraded"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class ChildPhase(StrEnum):
    """Where one member stands; `waiting` is not started yet, or between a crash and the next try."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ChildState(_Said):
    """One member of the group."""

    name: str
    phase: ChildPhase = ChildPhase.WAITING
    pid: int | None = None
    restarts: int = 0
    note: str = ""
    """Why it is not running, and what happens next."""
    log: str


class DaemonState(_Said):
    """The whole group."""

    pid: int
    phase: Phase
    started_at: datetime
    version: str
    temporal_address: str | None = None
    namespace: str | None = None
    ui_url: str | None = None
    bridge_url: str | None = None
    notes: tuple[str, ...] = ()
    children: tuple[ChildState, ...] = ()
    problem: str = ""
    hint: str = ""


class StateFile:
    """The daemon's own word, written whole at each change; a full disk must not take the daemon down."""

    def __init__(self, path: Path, state: DaemonState) -> None:
        self._path = path
        self.state = state
        self._write()

    def update(self, **changes: object) -> None:
        """Change some fields and say so."""
        self.state = self.state.model_copy(update=changes)
        self._write()

    def _write(self) -> None:
        try:
            write_private(self._path, self.state.model_dump_json(indent=2) + "\n")
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error.strerror)


def read_state(path: Path) -> DaemonState | None:
    """What the last daemon of this home said; None when none ever did or it cannot be read."""
    try:
        return DaemonState.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def read_pid(path: Path) -> int | None:
    """The `pid` of a small JSON file such as `worker.ready`; None when it is not there."""
    try:
        pid = json.loads(path.read_bytes())["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) else None
