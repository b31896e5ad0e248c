"""What can happen to a tree. Every event carries the time it happened: the reducer has no clock."""

from workflows.model.jobs import JobOutcome
from workflows.model.orders import ResumeOrder
from workflows.model.wire import Wire


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
    order: ResumeOrder
    whole: bool = False
    """Where it was said a refusal is shown: the answer is taken whole or not at all (ruling F5)."""
    fault: str = ""
    """Why what was sent is no order; nothing else of it counts then."""
    waiting: int = 0
    """The number of the call that waits to be told what becomes of it; 0 when nobody does."""
    budgets: bool = False
    """Needs room for its verb. False in a replay: an earlier release looked at a retry and its jobs alone (F4)."""
    foreseen: bool = False
    """Must not end the tree instead of its effect. False in a replay: an earlier release did not try it (ruling F4)."""

    @property
    def actor(self) -> str:
        """Who ordered it."""
        return self.order.actor


class TreeTakenUp(Wire):
    """An operator has a tree go on whose workflow was ended from outside: what was interrupted runs again."""

    now: float
    actor: str
    why: str
    """How its workflow ended."""
    since: float
    """When its workflow ended."""


class RecordRefused(Wire):
    """The store will never take the rows of these jobs as they were (ruling B6)."""

    now: float
    why: str
    job_ids: tuple[str, ...] = ()


Happened = TreeStarted | JobBegun | JobHeldUp | JobEnded | TimerFired | RecordRefused
Ordered = KillRequested | RetryRequested | ResumeRequested | TreeTakenUp
Event = Happened | Ordered
