"""Work that stalls without an order, since when, and the commands that help (ruling B3)."""

from dataclasses import dataclass
from enum import StrEnum

from workflows.text.durations import clock

STALL_SECONDS = 60.0
"""How long a stall lasts before people are shown it: longer than a restart of any process of the service."""

STEP_ATTEMPTS = 3
"""How many attempts of a workflow step are normal, for example after the death of a worker."""

WAYS = ("service daemon logs worker", "service daemon stop && service daemon start")
"""The commands that show the cause, and those that end most stalls. Running agents continue."""


class StallKind(StrEnum):
    """The kind of a stall."""

    END = "end"
    """A job's or stage's program has ended, but its end is not recorded."""
    STEP = "step"
    """A workflow step of a tree or run fails or times out again and again."""


@dataclass(frozen=True)
class Stall:
    """A program's end that is not recorded, or a workflow step that does not succeed."""

    kind: StallKind
    what: str
    """The id of the job, stage or workflow."""
    attempt: int
    since: float
    host: str = ""
    """The host on which the program ended; empty for a step."""

    @property
    def says(self) -> str:
        """Return the sentence that tells people of the stall."""
        if self.kind is StallKind.STEP:
            return f"its next step does not succeed: attempt {self.attempt}, since {clock(self.since)}"
        where = f" on {self.host}" if self.host else ""
        return f"its program ended{where}, and that is not recorded since {clock(self.since)}"
