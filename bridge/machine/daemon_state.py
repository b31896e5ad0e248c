"""The daemon's published state, and its status as seen from outside: whether it runs, its addresses, its health."""

import logging
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError, computed_field

from activities.runs.regular_files import write_private
from activities.settings.home import Home
from activities.settings.in_use import SettingsInUse
from activities.settings.ready import beat_of
from bridge.machine.locks import holder
from workflows.text.durations import format_duration

log = logging.getLogger(__name__)

RESTART = "service daemon stop && service daemon start"
"""The command that restarts all members. Running agents continue."""

SILENT = timedelta(seconds=60)
"""The time without a beat after which the daemon is frozen."""

VIEWS = {
    "all": '`WorkflowType`!="Notify"',
    "open trees": '`WorkflowType`="DelegationTree" AND `ExecutionStatus`="Running"',
    "waiting": '`SvcAttention` IS NOT NULL AND `ExecutionStatus`="Running"',
    "open legs": '`WorkflowType`="Delegation" AND `ExecutionStatus`="Running"',
    "running": '`ExecutionStatus`="Running" AND `WorkflowType`!="Notify"',
    "failed trees": '`WorkflowType`="DelegationTree" AND `ExecutionStatus` IN ("Failed", "Terminated", "TimedOut")',
    "failed today": '`ExecutionStatus`="Failed" AND `WorkflowType`!="Notify" AND `CloseTime`>="{today}"',
    "pipeline runs": '`WorkflowType`="PipelineRun"',
}
"""The query of each list in Temporal's web UI. Workflows that only notify people are left out."""


class GroupPhase(StrEnum):
    """The phase of the daemon's group of processes."""

    STARTING = "starting"
    RUNNING = "running"
    DEGRADED = "degraded"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class ChildPhase(StrEnum):
    """The state of one member; `waiting` is before its first start, or between a crash and the next one."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


class _StateModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ChildState(_StateModel):
    """One member of the group."""

    name: str
    phase: ChildPhase = ChildPhase.WAITING
    pid: int | None = None
    restarts: int = 0
    note: str = ""
    """The reason why the member is not running, and what happens next."""
    again_at: datetime | None = None
    """The time of the next restart of a dead member."""
    frozen_at: datetime | None = None
    """The last time at which the member was killed because it gave no sign of life."""
    log: str


class DaemonState(_StateModel):
    """The state of the whole group."""

    pid: int
    phase: GroupPhase
    started_at: datetime
    version: str
    temporal_address: str | None = None
    namespace: str | None = None
    ui_url: str | None = None
    bridge_url: str | None = None
    notes: tuple[str, ...] = ()
    settings: SettingsInUse | None = None
    """The settings that the daemon itself read at its start."""
    children: tuple[ChildState, ...] = ()
    problem: str = ""
    hint: str = ""


class StateFile:
    """The daemon's state file, written whole at each change. A full disk must not take the daemon down."""

    def __init__(self, path: Path, state: DaemonState) -> None:
        self._path = path
        self.state = state
        self._write()

    def update(self, **changes: object) -> None:
        """Change some fields and write the file."""
        self.state = self.state.model_copy(update=changes)
        self._write()

    def _write(self) -> None:
        try:
            write_private(self._path, self.state.model_dump_json(indent=2) + "\n")
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error.strerror)


def read_state(path: Path) -> DaemonState | None:
    """Return the state that the last daemon of this home wrote; None if the file is missing or unreadable."""
    try:
        return DaemonState.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


class DaemonStatus(BaseModel):
    """The status as seen from outside. If no daemon runs, `state` is the last one that a daemon of this home wrote."""

    model_config = ConfigDict(frozen=True)

    running: bool
    home: str
    pid: int | None = None
    silent_since: datetime | None = None
    """The time of the last heartbeat if the daemon is frozen, in which case it does not restart members that die."""
    uptime_seconds: float | None = None
    state: DaemonState | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def views(self) -> dict[str, str]:
        """Return the addresses of lists in Temporal's web UI, by name."""
        state = self.state
        if not self.running or state is None or not state.ui_url:
            return {}
        today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
        where = f"{state.ui_url}/namespaces/{state.namespace}/workflows?query="
        return {name: where + quote(query.format(today=today), safe="") for name, query in VIEWS.items()}

    @property
    def uptime(self) -> str:
        """The time since the start, in seconds, formatted like a typed duration."""
        return "" if self.uptime_seconds is None else format_duration(int(self.uptime_seconds))


def silence(seen: DaemonStatus) -> str:
    """Return a sentence that the daemon is frozen; empty if it isn't."""
    if seen.silent_since is None:
        return ""
    since = f"{seen.silent_since.astimezone():%Y-%m-%d %H:%M:%S %Z}"
    return f"the daemon (process {seen.pid}) has given no sign of life since {since}"


def status(home: Home) -> DaemonStatus:
    """Return the status. The lock decides whether a daemon runs: a killed one leaves an outdated state file."""
    pid = holder(home.daemon_lock)
    state = read_state(home.daemon_state)
    if pid is None:
        return DaemonStatus(running=False, home=str(home.root), state=state)
    if state is None or state.pid != pid:
        return DaemonStatus(running=True, home=str(home.root), pid=pid)
    now, beat = datetime.now(UTC), datetime.fromtimestamp((beat_of(home.daemon_state) or 0) / 1e9, UTC)
    return DaemonStatus(
        running=True,
        home=str(home.root),
        pid=pid,
        silent_since=beat if now - beat > SILENT else None,
        uptime_seconds=(now - state.started_at).total_seconds(),
        state=state,
    )
