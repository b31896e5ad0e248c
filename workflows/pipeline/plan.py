"""The input of a run: its definition with all values resolved, frozen at the start. Later edits never affect it (ruling
J4).
"""

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
    """Who or what started a run."""

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
    """Labels that the stage requires or prefers of its host (ruling Q4)."""


class PlannedShell(_Planned):
    """A shell stage's command and environment, which travel as one text."""

    kind: Literal[StageKind.SHELL] = StageKind.SHELL
    script: Text
    timeout_seconds: float | None = None


class PlannedAgent(_Planned):
    """An agent stage's assignment, with the run's payload in the prompt."""

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
    """The commit from which every stage starts; empty if it could not be read: then each stage starts from the current
    tip.
    """
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
    """For a finished run that continues: its `Reopened` message; empty for a new run (ruling K1)."""


class StageState(StrEnum):
    """The state of a stage (ruling K1)."""

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
    """The state of a run: those of a stage, and the pause (ruling K1)."""

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
    """True if the stage's host was lost or is drained: the stage is offered to another host (ruling Q5)."""
    cut_short: bool = False
    """True if a bound ended the stage's tree too early: another attempt would reach the same bound."""
    decision: Decision | None = None
    summary: str = ""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    branches: tuple[str, ...] = ()
    """The branches that the stage implemented, for the stages that need it."""
    of: str = ""
    """The name of the attempt, as its host reports it: all runs of a pipeline have one workflow id, so the seal alone
    does not tell them apart (ruling N1).
    """
