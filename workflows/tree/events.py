"""What can happen to a tree. Every event carries the time it happened: the reducer has no clock."""

from workflows.tree.jobs import JobOutcome, Wire


class TreeStarted(Wire):
    """The workflow began: run the root job."""

    now: float


class JobBegun(Wire):
    """The host has begun an attempt of a job, and will tell how it ended (ruling B5)."""

    now: float
    job_id: str
    offer: int
    at: float


class JobHeldUp(Wire):
    """A begun attempt stands still, or goes on: why, and what moves it (ruling B3)."""

    now: float
    job_id: str
    attempt: int
    reason: str
    next: str


class JobEnded(Wire):
    """An attempt of a job ended, however it ended."""

    now: float
    outcome: JobOutcome


class TimerFired(Wire):
    """A timer that a `StartTimer` command asked for went off."""

    now: float
    key: str


class KillRequested(Wire):
    """An operator ends the tree; `immediate` also cancels what runs (ruling G2)."""

    now: float
    actor: str
    immediate: bool = False


class RetryRequested(Wire):
    """An operator runs a failed leg again (ruling D4)."""

    now: float
    actor: str
    job_id: str


class ResumeRequested(Wire):
    """A person ends or extends a pause, or tries to (rulings F4, F6)."""

    now: float
    actor: str
    channel: str
    """Where it was said: `cli`, `bridge`, `dashboard`, `comment`, `temporal`."""
    job_id: str
    """The coordinator's, or that of any job of the tree (ruling B1); empty takes the only one that waits."""
    verb: str
    text: str = ""
    """Answers, instructions, or a duration."""
    round: int | None = None
    """The round it is meant for; None takes the open one."""
    digest: str = ""
    """The round's digest as the person saw it, or its first eight characters or more; empty takes any."""
    request_id: str = ""
    """The same request twice acts once: a comment's id, an idempotency key, an update's id."""
    whole: bool = False
    """Where it was said a refusal is shown: the answer is taken whole or not at all (ruling F5)."""
    partial: bool = False
    """Questions are left unanswered on purpose."""
    other: bool = False
    """A text that is none of the choices is the answer."""
    fault: str = ""
    """Why what was sent is no order; nothing else of it counts then."""


class TreeTakenUp(Wire):
    """An operator has a tree go on whose workflow was ended from outside: what was interrupted runs again."""

    now: float
    actor: str
    why: str
    """How its workflow ended,"""
    since: float
    """and when."""


Happened = TreeStarted | JobBegun | JobHeldUp | JobEnded | TimerFired
Ordered = KillRequested | RetryRequested | ResumeRequested | TreeTakenUp
Event = Happened | Ordered
