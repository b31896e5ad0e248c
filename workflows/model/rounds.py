"""A round as the workflow's state stores it: a pause in which people answer questions or decide about failures (ruling
F1).
"""

from enum import StrEnum

from workflows.contract.models import HumanQuestion
from workflows.model.briefs import Answer
from workflows.model.wire import Memory


class RoundKind(StrEnum):
    """What a round asks people for: answers to questions, or a decision about failures (ruling F1)."""

    ASK = "ask"
    FAILURE = "failure"


class RoundEnd(StrEnum):
    """How a round ended."""

    ANSWERED = "answered"
    RETRIED = "retried"
    CONTINUED = "continued"
    ABORTED = "aborted"
    EXPIRED = "expired"
    KILLED = "killed"
    OVERTAKEN = "overtaken"
    """The round's batch was blocked, or its tree was finalized for another reason."""


class TimerPurpose(StrEnum):
    """What a round's timer starts: one of two reminders, or the end (ruling F8)."""

    HALF = "half"
    NINETY = "ninety"
    END = "end"


class Round(Memory):
    """A pause for a person. Its coordinator holds what it is about: `asking` the questions, or the legs that are
    `escalated`.
    """

    number: int
    kind: RoundKind
    opened_at: float
    expires_at: float
    digest: str
    timer: str | None = None
    """The key of the round's only timer: for the next reminder, or the end."""
    stage: TimerPurpose = TimerPurpose.HALF
    """The purpose of the round's timer."""
    armed_at: float
    """The time when the round's deadline was last set: reminders are counted from here."""
    extensions: int = 0
    shown: list[str] = []
    """The verbs that the round accepts, as its row shows them."""
    vain: dict[str, str] = {}
    """Verbs that would end the tree instead of doing what they say, each with the reason (ruling F4)."""
    requests: list[str] = []
    """Ids of accepted requests, for idempotency."""
    text: str = ""
    """What the person wrote, until the coordinator receives it."""
    end: RoundEnd | None = None
    closed: str = ""
    """Who ended the round, how and when; empty while the round is open."""

    @property
    def open(self) -> bool:
        """True while the round waits for a person."""
        return self.end is None


def last_words(coordinator_id: str, number: int, closed: str) -> str:
    """Return a sentence that says by whom, how and when a round was ended (ruling F4)."""
    return f"round {number} of {coordinator_id} is over: {closed}"


class Asked(Memory):
    """An open question."""

    id: str
    """The question's own id, or `<leg>.<id>` if another open question has that id (ruling F2)."""
    question: HumanQuestion
    job_id: str
    leg: str = ""
    """The leg that asks; empty for the coordinator itself."""


class Reply(Memory):
    """What people wrote to a coordinator, for its next continuation."""

    answers: list[Answer] = []
    guidance: str = ""
    unmatched: list[str] = []
