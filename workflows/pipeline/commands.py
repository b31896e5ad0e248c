"""The commands that a run's reducer returns. The Temporal shell carries them out in order and decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from workflows.contract.models import Decision
from workflows.model.wire import Wire
from workflows.pipeline.plan import RunState
from workflows.pipeline.rows import RunRecords
from workflows.pipeline.stages import StageRun
from workflows.tree.state import TreeInput


@dataclass(frozen=True)
class RecordRows:
    """Write these rows before carrying out the commands that follow."""

    records: RunRecords


@dataclass(frozen=True)
class RunShell:
    """Run one attempt of a shell stage on the repository's host."""

    run: StageRun


@dataclass(frozen=True)
class RunTree:
    """Run one attempt of an agent stage as a tree of its own."""

    stage_id: str
    attempt: int
    tree: TreeInput
    success: tuple[Decision, ...]


@dataclass(frozen=True)
class ReopenTree:
    """A command to continue a stage's latest tree from the state in which it was blocked."""

    stage_id: str
    attempt: int
    job_id: str
    success: tuple[Decision, ...]


@dataclass(frozen=True)
class PauseStage:
    """A command to send the run `RetryDue` after so many seconds."""

    stage_id: str
    seconds: float
    summary: str


@dataclass(frozen=True)
class CancelStage:
    """A command to stop all that runs for a stage: its shell command, its tree, its timer."""

    stage_id: str


class CloseRun(Wire):
    """A command to end the run; the workflow returns this value."""

    run_id: str
    state: RunState
    reason: str = ""
    halt_stage: str | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    price_assumed: bool = False


def merge_records(several: Sequence[RunRecords]) -> RunRecords | None:
    """Merge several writes into one, with the latest version of each row."""
    if len(several) < 2:
        return several[0] if several else None
    return RunRecords(
        run=several[-1].run,
        stages=tuple({stage.stage_id: stage for each in several for stage in each.stages}.values()),
        begins=next((each.begins for each in several if each.begins), None),
        trees=tuple(tree for each in several for tree in each.trees),
        host=several[-1].host,
    )


Command = RecordRows | RunShell | RunTree | ReopenTree | PauseStage | CancelStage | CloseRun
