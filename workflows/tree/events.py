"""Events of a tree. Every event carries its time: the reducer has no clock."""

from workflows.model.jobs import JobOutcome
from workflows.model.orders import ResumeOrder
from workflows.model.wire import Wire


class TreeStarted(Wire):
    """The start of the workflow: the root job is to run."""

    now: float


class JobBegun(Wire):
    """A host's report that it has begun an attempt of a job; it will report the end too (ruling B5)."""

    now: float
    job_id: str
    offer: int
    at: float


class JobHeldUp(Wire):
    """A host's report that an attempt waits, why, and what ends the wait; or that it continues (ruling B3)."""

    now: float
    job_id: str
    attempt: int
    reason: str
    next: str
    offer: int = 0
    """The number of an offer for which no host is chosen yet (ruling Q4); 0 for a begun attempt."""


class JobEnded(Wire):
    """The end of an attempt, in whatever state."""

    now: float
    outcome: JobOutcome


class TimerFired(Wire):
    """The firing of a timer that `StartTimer` started."""

    now: float
    key: str


class KillRequested(Wire):
    """An operator's order to end the tree; `immediate` also cancels running jobs (ruling G2)."""

    now: float
    actor: str
    immediate: bool = False


class RetryRequested(Wire):
    """An operator's order to run a failed leg again (ruling D4)."""

    now: float
    actor: str
    job_id: str


class ResumeRequested(Wire):
    """A person's order to end or extend a pause (rulings F4, F6)."""

    now: float
    order: ResumeOrder
    whole: bool = False
    """True if the person sees a refusal: then an incomplete answer is refused (ruling F5)."""
    fault: str = ""
    """Why the message is not a valid order; its other fields are then ignored."""
    waiting: int = 0
    """Number of the call that waits for the order's outcome; 0 if none does."""
    answers: bool = False
    """True: an answer is accepted even if the job budget is used up, which is then not recorded as tripped. False in
    replays of an earlier release (F4).
    """

    @property
    def actor(self) -> str:
        """The person who gave the order."""
        return self.order.actor


class TreeTakenUp(Wire):
    """An operator's order to continue a tree whose workflow was ended from outside: interrupted jobs run again."""

    now: float
    actor: str
    why: str
    """How the tree's workflow ended, in words."""
    since: float
    """When the tree's workflow ended."""


class RecordRefused(Wire):
    """The store rejected rows of these jobs permanently: a retry would fail too (ruling B6)."""

    now: float
    why: str
    job_ids: tuple[str, ...] = ()


Happened = TreeStarted | JobBegun | JobHeldUp | JobEnded | TimerFired | RecordRefused
Ordered = KillRequested | RetryRequested | ResumeRequested | TreeTakenUp
Event = Happened | Ordered
