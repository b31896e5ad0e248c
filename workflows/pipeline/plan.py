"""What a run is started with: its definition resolved, complete and frozen. Later edits never touch it (ruling J4)."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from workflows.contract.models import Decision
from workflows.model.settings import TreeSettings
from workflows.model.spend import Usage
from workflows.model.texts import Text
from workflows.model.wire import Wire
from workflows.model.workers import Assignment
from workflows.pipeline.definition import SUCCESS, StageKind


class Trigger(StrEnum):
    """Who starts a run."""

    CLI = "cli"
    BRIDGE = "bridge"
    DASHBOARD = "dashboard"
    SCHEDULE = "schedule"


class _Planned(Wire):
    id: str
    needs: tuple[str, ...] = ()
    retry: int = 0


class PlannedShell(_Planned):
    """A command and its environment, which travel as one text."""

    kind: Literal[StageKind.SHELL] = StageKind.SHELL
    script: Text
    timeout_seconds: float | None = None


class PlannedAgent(_Planned):
    """A tree's beginning: who, and the prompt with the payload in it."""

    kind: Literal[StageKind.AGENT] = StageKind.AGENT
    assignment: Assignment
    success: tuple[Decision, ...] = SUCCESS


Planned = Annotated[PlannedShell | PlannedAgent, Field(discriminator="kind")]


class RunInput(Wire):
    """Everything a run needs to know, small enough for a history."""

    run_id: str
    pipeline: str
    repo: str
    host: str
    """The host that owns the repository's checkout."""
    base: str = ""
    """The commit every stage starts from; empty where it could not be read: then each takes the tip it finds."""
    pull_request: int | None = None
    issue: int | None = None
    """What the run belongs to (ruling L1); a stage that names another belongs to that one."""
    github: str = ""
    trigger: Trigger
    created_at: float
    definition: Text
    """The file as it was."""
    payload: Text = Text(inline="{}")
    settings: TreeSettings = TreeSettings()
    stages: tuple[Planned, ...]
    again: dict[str, Any] = {}
    """What a run that is over goes on with, as `Reopened` says it; empty for a new one (ruling K1)."""


class StageState(StrEnum):
    """Ruling K1."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Tell whether the stage's attempt is over."""
        return self not in {StageState.PENDING, StageState.RUNNING}


class RunState(StrEnum):
    """Ruling K1: a stage's states, and the pause."""

    PENDING = "pending"
    RUNNING = "running"
    AWAITING_HUMAN = "awaiting_human"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


OPEN_RUNS = frozenset({RunState.PENDING, RunState.RUNNING, RunState.AWAITING_HUMAN})


class StageOutcome(Wire):
    """How one attempt of a stage ended."""

    state: StageState
    reason: str = ""
    decision: Decision | None = None
    summary: str = ""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    branches: tuple[str, ...] = ()
    """What it implemented, for the stages that need it."""
    of: str = ""
    """The attempt whose end it is, as its host says: all runs of a pipeline have one workflow id (ruling N1)."""
