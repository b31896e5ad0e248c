"""The input of a run: its definition resolved, complete and frozen. Later edits never affect it (ruling J4)."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from workflows.contract.models import Decision
from workflows.model.long_texts import Text
from workflows.model.settings import TreeSettings
from workflows.model.spend import Usage
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
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that the stage requires and prefers of its host (ruling Q4)."""


class PlannedShell(_Planned):
    """A command and its environment, which travel as one text."""

    kind: Literal[StageKind.SHELL] = StageKind.SHELL
    script: Text
    timeout_seconds: float | None = None


class PlannedAgent(_Planned):
    """The start of a tree: its assignment, with the payload in the prompt."""

    kind: Literal[StageKind.AGENT] = StageKind.AGENT
    assignment: Assignment
    success: tuple[Decision, ...] = SUCCESS


Planned = Annotated[PlannedShell | PlannedAgent, Field(discriminator="kind")]


class RunInput(Wire):
    """Everything a run needs, small enough for a history."""

    run_id: str
    pipeline: str
    repo: str
    host: str
    """The host that owns the repository's checkout."""
    placed: bool = False
    """True if a host is chosen for each attempt (ruling Q4); otherwise all run on the run's host."""
    base: str = ""
    """The start commit of every stage; empty if it could not be read: then each stage takes the current tip."""
    pull_request: int | None = None
    issue: int | None = None
    """The run's pull request or issue (ruling L1); a stage may name its own."""
    github: str = ""
    trigger: Trigger
    created_at: float
    definition: Text
    """The definition file's text."""
    payload: Text = Text(inline="{}")
    settings: TreeSettings = TreeSettings()
    stages: tuple[Planned, ...]
    again: dict[str, Any] = {}
    """The `Reopened` message with which a finished run resumes; empty for a new run (ruling K1)."""


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
    def has_ended(self) -> bool:
        """True if the stage's attempt is over."""
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
    """The end of one attempt of a stage."""

    state: StageState
    reason: str = ""
    moved: bool = False
    """True if the stage's host was lost or is drained: the stage is offered elsewhere (ruling Q5)."""
    cut_short: bool = False
    """True if a bound ended its tree too early: another attempt would have the same bounds."""
    decision: Decision | None = None
    summary: str = ""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    branches: tuple[str, ...] = ()
    """Its implemented branches, for the stages that need it."""
    of: str = ""
    """The attempt that ended so, as reported by its host: all runs of a pipeline share one workflow id (ruling N1)."""
