"""The rows of a run. Each carries the run's revision, which only grows, so repeated or late writes are idempotent."""

from workflows.contract.models import Decision
from workflows.model.wire import Wire
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunInput, RunState, StageState, Trigger
from workflows.tree.state import TreeInput


class RunRecord(Wire):
    """A run as people see it; its definition and payload are written once, beside it."""

    run_id: str
    pipeline: str
    repo: str
    pull_request: int | None = None
    issue: int | None = None
    """Its pull request or issue (ruling L1)."""
    trigger: Trigger
    state: RunState
    reason: str = ""
    halt_stage: str | None = None
    """The first stage that did not succeed."""
    revision: int = 0
    started_at: float
    finished_at: float | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if some of it is a guess (ruling K5)."""


class StageRecord(Wire):
    """A stage of a run."""

    run_id: str
    stage_id: str
    number: int
    """Its position in the definition, from 1."""
    kind: StageKind
    needs: tuple[str, ...]
    state: StageState
    reason: str = ""
    revision: int = 0
    attempt: int = 0
    job_id: str | None = None
    """The root of an agent stage's latest tree."""
    decision: Decision | None = None
    summary: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    tokens: int = 0


class RunRecords(Wire):
    """All changes of one step of a run, to be written in one transaction."""

    run: RunRecord
    stages: tuple[StageRecord, ...] = ()
    begins: RunInput | None = None
    """Set on the first records: the run's input is written too."""
    trees: tuple[TreeInput, ...] = ()
    """Trees of agent stages that start."""
    host: str = ""
    """The host of those trees."""
