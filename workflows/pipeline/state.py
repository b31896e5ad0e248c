"""The state of a run: its input, and the progress of each stage."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from workflows.contract.models import Decision
from workflows.model.spend import Usage
from workflows.pipeline.plan import Planned, RunInput, RunState, StageState


@dataclass
class StageMemory:
    """The progress of one stage."""

    plan: Planned
    number: int
    state: StageState = StageState.PENDING
    attempt: int = 0
    moves: int = 0
    """Number of attempts that ended because their host was lost or drained; they do not count as failures (ruling
    Q5).
    """
    reason: str = ""
    decision: Decision | None = None
    summary: str = ""
    job_id: str | None = None
    waits_for: str = ""
    """Why the stage's tree waits for people; empty while it does not."""
    pausing: bool = False
    """True during the pause before the stage's next attempt."""
    branches: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    counted: Usage = field(default_factory=Usage)
    """The usage of the latest tree that is already counted: a re-opened tree reports it again."""
    counted_usd: float = 0.0
    started_at: float | None = None
    finished_at: float | None = None

    @property
    def has_ended(self) -> bool:
        return self.state.has_ended


@dataclass
class RunMemory:
    """The whole state of a run's reducer."""

    input: RunInput
    stages: dict[str, StageMemory]
    now: float
    state: RunState = RunState.PENDING
    reason: str = ""
    halt_stage: str | None = None
    revision: int = 0
    finished_at: float | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    price_assumed: bool = False
    cancelled_by: str = ""
    last_refusal: str = ""
    """The last unreadable cancel message, with its time and reason: it is shown in the run's details, where the sender
    can see it.
    """
    told: bool = False
    """True once the run's input is stored."""

    @property
    def is_closed(self) -> bool:
        return self.finished_at is not None

    @property
    def waiting(self) -> list[StageMemory]:
        """The stages whose trees wait for people. While there is any, no stage starts (ruling K1)."""
        return [stage for stage in self.stages.values() if stage.waits_for]

    @property
    def is_over(self) -> bool:
        """True once every stage has ended."""
        return all(stage.has_ended for stage in self.stages.values())

    def unmet(self, stage: StageMemory) -> list[StageMemory]:
        """Return the needed stages that have not succeeded."""
        needed = (self.stages[name] for name in stage.plan.needs)
        return [each for each in needed if each.state is not StageState.SUCCEEDED]

    def branches_for(self, stage: StageMemory) -> tuple[str, ...]:
        """Return the branches whose work the stage must see: those of all stages it needs, transitively, in the
        definition's order.
        """
        wanted, pending = set[str](), list(stage.plan.needs)
        while pending:
            if (name := pending.pop()) not in wanted:
                wanted.add(name)
                pending += self.stages[name].plan.needs
        branches = (branch for name, each in self.stages.items() if name in wanted for branch in each.branches)
        return tuple(dict.fromkeys(branches))


def new_run(start: RunInput) -> RunMemory:
    """Return the state of a new run."""
    stages = {plan.id: StageMemory(plan, number) for number, plan in enumerate(start.stages, 1)}
    return RunMemory(start, stages, start.created_at)


def travelling(run: RunMemory) -> dict[str, Any]:
    """Return a run's state as it is sent."""
    dumped: dict[str, Any] = TypeAdapter(RunMemory).dump_python(run, mode="json")
    return dumped


def restore(memory: dict[str, Any]) -> RunMemory:
    """Rebuild a run's state from its sent form."""
    return TypeAdapter(RunMemory).validate_python(memory)
