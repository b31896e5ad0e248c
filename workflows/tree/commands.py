"""What a tree wants done. The Temporal shell carries commands out in order and decides nothing."""

from workflows.contract.models import Decision
from workflows.model.jobs import JobRun
from workflows.model.refusals import Refusal
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import TaskState
from workflows.model.wire import Wire


class RunCoordinator(Wire):
    """Run the root job or a continuation, inside the tree's own workflow."""

    run: JobRun
    summary: str


class RunChild(Wire):
    """Run one attempt of a delegated job as a child workflow."""

    run: JobRun
    summary: str


class TakeBack(Wire):
    """Have a job back that its host has not begun: then it ends without having run. One that has begun runs on."""

    job_id: str
    attempt: int
    offer: int


class CancelJob(Wire):
    """Stop a job, whether it has begun or not; it still ends, with an outcome."""

    job_id: str


class StartTimer(Wire):
    """Wake the tree with `TimerFired(key)` after so many seconds."""

    key: str
    seconds: float
    summary: str


class CancelTimer(Wire):
    """The timer is not wanted any more."""

    key: str


class Record(Wire):
    """Write these rows before carrying out the commands that follow."""

    records: Records


class CloseTree(Wire):
    """The tree is over; the workflow returns this."""

    root_job_id: str
    task_state: TaskState
    decision: Decision | None
    summary: str
    reason: str
    jobs: int
    usage: Usage
    cost_usd: float
    price_assumed: bool = False
    aborted: str = ""
    """Which round a person aborted, and who; empty when nobody did."""
    branches: tuple[str, ...] = ()
    """What its implement jobs left, in order of dispatch."""


class AnswerOrder(Wire):
    """Tell the call that waits what became of its order."""

    waiting: int
    refusal: Refusal | None = None
    text: str = ""


Command = AnswerOrder | RunCoordinator | RunChild | TakeBack | CancelJob | StartTimer | CancelTimer | Record | CloseTree
