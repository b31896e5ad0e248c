"""Payloads of events in which people take part: blocks, rounds, orders. Others: `tree_payloads`, `job_payloads`."""

from workflows.model.payload import Payload


class BlockPayload(Payload):
    """The task is blocked; the job whose retry opens it again, empty when none does."""

    retry: str


class ActorPayload(Payload):
    """Who gave the order."""

    actor: str


class AgentRefusedPayload(Payload):
    """An agent has called what only people may order."""

    job_id: str
    order: str


class TreeLostPayload(Payload):
    """Its workflow was ended from outside: the jobs that ended with it, and the command to type."""

    jobs: list[str]
    next: str


class TakeUpPayload(Payload):
    """Who has it go on, and the jobs that run again."""

    actor: str
    again: list[str]


class QuestionsPayload(Payload):
    """Questions to people, by id."""

    questions: list[str]


class RoundPayload(Payload):
    """A pause, as it stands: what is asked by id or leg, until when, and the commands that end it (ruling F1)."""

    round: int
    kind: str
    digest: str
    asks: list[str]
    commands: list[str]
    expires_at: float
    handle: str | None
    """Who is to be told, when the settings name somebody."""


class RoundEndPayload(Payload):
    """A pause that no person ended."""

    round: int
    kind: str
    end: str


class ResumePayload(Payload):
    """Who ended or extended a pause, from where, and how (ruling F6); what was taken of the words (ruling F5)."""

    actor: str
    channel: str
    verb: str
    round: int
    digest: str
    recorded: list[str]
    """A line each: an answer with its id, a question that stays open, what became guidance."""
    unanswered: list[str]
    unmatched: list[str]
    """What stood in an id's place and is none."""
    request: str = ""
    """What the request was called: one that comes again is no other one, however late."""


class ResumeRefusedPayload(Payload):
    """Who tried to, and why it was refused (ruling F4)."""

    actor: str
    channel: str
    verb: str
    round: int | None
    why: str
