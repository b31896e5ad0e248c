"""The events of a run. Times come from the workflow; the reducer has no clock."""

from dataclasses import dataclass

from workflows.pipeline.plan import StageOutcome


@dataclass(frozen=True)
class RunStarted:
    """The workflow begins."""

    now: float


@dataclass(frozen=True)
class StageEnded:
    """An attempt of a stage has ended."""

    now: float
    stage_id: str
    attempt: int
    outcome: StageOutcome


@dataclass(frozen=True)
class RetryDue:
    """The pause before a stage's next attempt is over."""

    now: float
    stage_id: str


@dataclass(frozen=True)
class AttentionChanged:
    """The tree of an agent stage begins to wait for people, or stops waiting (`waits_for` is empty)."""

    now: float
    job_id: str
    waits_for: str


@dataclass(frozen=True)
class StageReopened:
    """An operator retries a job in a stage's blocked tree, which re-opens the stage."""

    now: float
    stage_id: str
    job_id: str
    """The root job of the stage's tree."""


@dataclass(frozen=True)
class CancelRequested:
    """A person ends the run."""

    now: float
    actor: str


Event = RunStarted | StageEnded | RetryDue | AttentionChanged | StageReopened | CancelRequested
