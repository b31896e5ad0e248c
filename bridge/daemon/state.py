"""What a daemon says about itself: the file that commands read to know whether, where and how well it runs."""

import logging
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from activities.ready import write_private
from activities.settings.reading import Told

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
    again_at: datetime | None = None
    """Until then a member that died is not started again."""
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
    settings: Told | None = None
    """What the group was started with, as far as it concerns the group itself."""
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
