"""What can happen to a tree. Every event carries the time it happened: the reducer has no clock."""

from workflows.tree.jobs import JobOutcome, Wire


class TreeStarted(Wire):
    """The workflow began: run the root job."""

    now: float


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


Event = TreeStarted | JobEnded | TimerFired | KillRequested | RetryRequested
