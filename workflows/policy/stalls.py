"""Stalls that nobody ordered, with their beginning and the commands that help (ruling B3)."""

from dataclasses import dataclass
from enum import StrEnum

from workflows.text.durations import clock

STALL_SECONDS = 60.0
"""Time after which people are shown a stall: longer than a restart of any process of the service."""

STEP_ATTEMPTS = 3
"""Attempts of a step of a tree or run that are usual, as after the death of a worker."""

WAYS = ("service daemon logs worker", "service daemon stop && service daemon start")
"""The commands that show the cause, and that end most stalls. Running agents continue."""


class StallKind(StrEnum):
    """The kind of a stall."""

    END = "end"
    """The end of a job's or stage's program, which is not recorded."""
    STEP = "step"
    """A step of a tree or run, which fails or times out again and again."""


@dataclass(frozen=True)
class Stall:
    """A stalled end of a program, or a stalled workflow step."""

    kind: StallKind
    what: str
    """The id of the job, stage or workflow."""
    attempt: int
    since: float
    host: str = ""
    """The host of a stalled end of a program."""

    @property
    def says(self) -> str:
        """Return the sentence for people."""
        if self.kind is StallKind.STEP:
            return f"its next step does not succeed: attempt {self.attempt}, since {clock(self.since)}"
        where = f" on {self.host}" if self.host else ""
        return f"its program ended{where}, and that is not recorded since {clock(self.since)}"
