"""Commands that the tree's reducer returns. The Temporal shell carries them out in order and decides nothing."""

from workflows.contract.models import Decision
from workflows.model.jobs import JobRun
from workflows.model.orders import StopReason
from workflows.model.refusals import Refusal
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import TaskState
from workflows.model.wire import Wire


class RunCoordinator(Wire):
    """A command to run the root job or a continuation, inside the tree's own workflow."""

    run: JobRun
    summary: str


class RunChild(Wire):
    """A command to run one attempt of a delegated job as a child workflow."""

    run: JobRun
    summary: str


class TakeBack(Wire):
    """A command to withdraw the offer of a job. If the host has begun the job, the job keeps running; otherwise the job
    ends without having run.
    """

    job_id: str
    attempt: int
    offer: int


class CancelJob(Wire):
    """A command to stop a job, begun or not; it still ends with an outcome."""

    job_id: str
    why: StopReason


class StartTimer(Wire):
    """A command to send the tree `TimerFired(key)` after so many seconds."""

    key: str
    seconds: float
    summary: str


class CancelTimer(Wire):
    """A command to cancel a timer."""

    key: str


class Record(Wire):
    """A command to write these rows before the following commands are carried out."""

    records: Records


class CloseTree(Wire):
    """A command to end the workflow of a closed tree; the workflow returns this value."""

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
    """Which round a person aborted, and who; empty without an abort."""
    cut_short: bool = False
    """True if a bound ended the tree before all planned jobs ran; the reason names the bound (ruling G1)."""
    branches: tuple[str, ...] = ()
    """Branches of the tree's jobs, in dispatch order."""


class AnswerOrder(Wire):
    """A command to answer a call that waits for the outcome of its order."""

    waiting: int
    refusal: Refusal | None = None
    text: str = ""


Command = AnswerOrder | RunCoordinator | RunChild | TakeBack | CancelJob | StartTimer | CancelTimer | Record | CloseTree
