"""What a daemon says about itself, and what can be known of it from outside: whether, where and how well it runs."""

import logging
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError, computed_field

from activities.runs.regular_files import write_private
from activities.settings.home import Home
from activities.settings.reading import Told
from bridge.machine.locks import holder
from workflows.contract.durations import format_duration

log = logging.getLogger(__name__)

VIEWS = {
    "all": '`WorkflowType`!="Notify"',
    "waiting": '`SvcAttention` IS NOT NULL AND `ExecutionStatus`="Running"',
    "running": '`ExecutionStatus`="Running" AND `WorkflowType`!="Notify"',
    "failed today": '`ExecutionStatus`="Failed" AND `WorkflowType`!="Notify" AND `CloseTime`>="{today}"',
}
"""What each list asks Temporal for; what only tells people of a tree is in none of them."""


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
    """What the daemon says of itself, written whole at each change; a full disk must not take the daemon down."""

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


class DaemonStatus(BaseModel):
    """What can be known from outside. When it does not run, `state` is the last thing a daemon of this home said."""

    model_config = ConfigDict(frozen=True)

    running: bool
    home: str
    pid: int | None = None
    uptime_seconds: float | None = None
    state: DaemonState | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def views(self) -> dict[str, str]:
        """Lists in Temporal's web UI that people look at, ready to open."""
        state = self.state
        if not self.running or state is None or not state.ui_url:
            return {}
        today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
        where = f"{state.ui_url}/namespaces/{state.namespace}/workflows?query="
        return {name: where + quote(query.format(today=today), safe="") for name, query in VIEWS.items()}

    @property
    def uptime(self) -> str:
        """Since the start, to the second, as durations are typed."""
        return "" if self.uptime_seconds is None else format_duration(int(self.uptime_seconds))


def status(home: Home) -> DaemonStatus:
    """Whether it runs, by its lock and not by its file: a daemon that was killed cannot have said so."""
    pid = holder(home.daemon_lock)
    state = read_state(home.daemon_state)
    if pid is None:
        return DaemonStatus(running=False, home=str(home.root), state=state)
    if state is None or state.pid != pid:
        return DaemonStatus(running=True, home=str(home.root), pid=pid)
    uptime = (datetime.now(UTC) - state.started_at).total_seconds()
    return DaemonStatus(running=True, home=str(home.root), pid=pid, uptime_seconds=uptime, state=state)
