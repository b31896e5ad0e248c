"""Payloads of events that involve people: blocks, rounds, orders. Others: `tree_payloads`, `job_payloads`."""

from workflows.model.payload import Payload


class BlockPayload(Payload):
    """The task is blocked. Contains the job whose retry opens it again, or ""."""

    retry: str


class ActorPayload(Payload):
    """The actor of an order."""

    actor: str


class AgentRefusedPayload(Payload):
    """An agent called an operation that only people may order."""

    job_id: str
    order: str


class TreeLostPayload(Payload):
    """The tree's workflow was ended from outside. Contains the jobs that ended with it, and the command to type."""

    jobs: list[str]
    next: str


class TakeUpPayload(Payload):
    """The actor who takes a lost tree up, and the jobs that run again."""

    actor: str
    again: list[str]


class QuestionsPayload(Payload):
    """Questions to people, by id."""

    questions: list[str]


class RoundPayload(Payload):
    """A pause: its questions by id or leg, its deadline, and the commands that end it (ruling F1)."""

    round: int
    kind: str
    digest: str
    asks: list[str]
    commands: list[str]
    expires_at: float
    handle: str | None
    """The handle to mention, if the settings name one."""


class RoundEndPayload(Payload):
    """A pause that ended without a person."""

    round: int
    kind: str
    end: str


class ResumePayload(Payload):
    """The end or extension of a pause: its actor and channel (ruling F6), and what was recorded (ruling F5)."""

    actor: str
    channel: str
    verb: str
    round: int
    digest: str
    recorded: list[str]
    """One line each: an answer with its id, a question that stays open, words taken as guidance."""
    unanswered: list[str]
    unmatched: list[str]
    """Unknown ids in the answer."""
    request: str = ""
    """The request's idempotency key: a repeat is recognised, however late."""


class ResumeRefusedPayload(Payload):
    """A refused resume: its actor, and the reason (ruling F4)."""

    actor: str
    channel: str
    verb: str
    round: int | None
    why: str
