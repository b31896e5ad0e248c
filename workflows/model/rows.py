"""The rows a tree writes about itself: its task, jobs, rounds and events. Rows of pipeline runs are in `pipeline/rows`.

Every row has the tree's `revision`, which only grows, so repeated or late writes are idempotent. For a tree whose
workflow has died, `policy/lost_trees` makes the rows.
"""

from collections.abc import Sequence

from workflows.contract.models import Action, Decision
from workflows.model.jobs import Work
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.model.wire import Wire

RETRY = "service job retry"
"""The command that opens a blocked task again; append the job."""

DISMISS = "service job dismiss"
"""The command that ends a blocked task permanently; append the root."""

KILL = "service job kill"
"""The command that ends a tree; append any of its jobs, and `--now` to end it at once."""


BATCH_BLOCKED = "its batch is blocked: "
"""How the reason of a job begins if its delegations are blocked."""


_NAMES = {
    Continuation.NONE: "first job",
    Continuation.NORMAL: "reads the results",
    Continuation.CORRECTIVE: "corrects its plan",
    Continuation.REPLAN: "plans again",
    Continuation.ANSWERED: "goes on after the answer",
    Continuation.FINALIZE: "sums up",
}


class JobRecord(Wire):
    """A job as people see it (rulings B2, B3)."""

    job_id: str
    root_job_id: str
    parent_job_id: str | None
    delegation_id: str | None
    delegation_depth: int
    task_id: str
    repo: str
    agent: str
    ephemeral: bool
    runtime: str
    action: Action
    continuation: Continuation
    state: JobState
    revision: int
    attempt: int = 1
    moves: int = 0
    """The number of the job's attempts that moved from a lost or drained host. They count against no bound (Q5)."""
    reason: str = ""
    next: str = ""
    """What happens next, and the exact command for it if a person has to act."""
    waits_for: WaitsFor = WaitsFor.NOTHING
    decision: Decision | None = None
    summary: str = ""
    model: str | None = None
    effort: str | None = None
    phase: str | None = None
    branch: str | None = None
    head_sha: str | None = None
    pull_request: int | None = None
    issue: int | None = None
    result_digest: str | None = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if part of the cost is an estimate: a model was not in the price table, and was counted at the mid tier
    (ruling K5).
    """
    queued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    preflight_failed: str | None = None

    @property
    def name(self) -> str:
        """The name of the job's leg; for a coordinator's own job, what it does."""
        return self.delegation_id or _NAMES[self.continuation]

    @property
    def has_blocked_batch(self) -> bool:
        """True if the job's delegations are blocked: no more of them start, and its coordinator does not run again
        (ruling D4).
        """
        return self.reason.startswith(BATCH_BLOCKED)

    @property
    def work(self) -> tuple[str, ...]:
        """The branch of an implement job that succeeded, if it has one."""
        made = self.state is JobState.SUCCEEDED and self.action is Action.IMPLEMENT and self.branch
        return (self.branch,) if made and self.branch else ()

    def as_work(self, leg: str) -> tuple[Work, ...]:
        """Return the job's branch as work of a leg, or as a coordinator's own."""
        head = self.head_sha or ""
        return tuple(Work(leg=leg, job_id=self.job_id, branch=branch, head=head) for branch in self.work)


class TaskRecord(Wire):
    """The task that a tree belongs to."""

    task_id: str
    root_job_id: str
    repo: str
    title: str
    state: TaskState
    revision: int
    reason: str = ""
    next: str = ""
    waits_for: WaitsFor = WaitsFor.NOTHING
    to_retry: str = ""
    """The job whose retry opens the task again."""
    opened_at: float
    ended_at: float | None = None
    paused_seconds: float = 0.0
    """The length of all ended pauses, which the wall clock excludes (ruling F8)."""
    paused_since: float | None = None

    @property
    def why(self) -> str:
        """The reason of the task's state, if it says more than the state. Empty for an open task, unless it is ending
        early.
        """
        return self.reason if self.state is not TaskState.OPEN or self.waits_for is WaitsFor.RUNS else ""

    @property
    def cut_short(self) -> bool:
        """Return whether a bound ended the task before all planned jobs ran; its `next` is then the command to start it
        as a new tree (ruling G1).
        """
        return self.state is TaskState.DONE and self.waits_for is WaitsFor.START

    def elapsed_seconds(self, now: float) -> float:
        """Return the wall-clock time without pauses (ruling C4)."""
        return max(0.0, (self.ended_at or self.paused_since or now) - self.opened_at - self.paused_seconds)

    def waited_seconds(self, now: float) -> float:
        """Return the time of all pauses so far (ruling C4)."""
        since = now if self.ended_at else self.paused_since or now
        return self.paused_seconds + max(0.0, now - since)


class QuestionRecord(Wire):
    """A question of a round, and its answer if it has one."""

    id: str
    prompt: str
    choices: tuple[str, ...] = ()
    job_id: str
    leg: str = ""
    """The leg that asks; empty for the coordinator itself."""
    answer: str | None = None


class FailingRecord(Wire):
    """A failed leg that a round is about, and why it failed."""

    leg: str
    job_id: str
    attempt: int
    state: JobState
    reason: str = ""


class RoundRecord(Wire):
    """A pause as people see it, with all that they need to end it (rulings F1, B3)."""

    round_id: str
    """`<coordinator>-r<number>`."""
    root_job_id: str
    coordinator_id: str
    """The job id to use in a resume."""
    job_id: str
    """The coordinator's latest job."""
    task_id: str
    repo: str
    number: int
    kind: RoundKind
    digest: str
    """Digest of the round's questions: a resume with an older digest is refused."""
    revision: int
    questions: tuple[QuestionRecord, ...] = ()
    failing: tuple[FailingRecord, ...] = ()
    verbs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The exact commands that resume the tree, one per verb."""
    opened_at: float
    expires_at: float
    end: RoundEnd | None = None
    """How the round ended; None while the round is open."""
    closed_at: float | None = None
    closed: str = ""
    """Who ended the round, how and when."""
    said: str = ""
    """What the person wrote."""


class EventRecord(Wire):
    """A lifecycle event (rulings B4, B7): its id `<job>-e<n>`, a kind, a typed payload, and one line for people."""

    event_id: str
    seq: int = 0
    """Its number among all events of the tree, operators' events included; assigned by the store."""
    job_id: str
    root_job_id: str
    kind: str
    at: float
    message: str
    data: dict[str, str | int | float | bool | list[str] | None] = {}


class Records(Wire):
    """All row changes of one step of the tree, to be written in one transaction."""

    task: TaskRecord | None = None
    jobs: tuple[JobRecord, ...] = ()
    events: tuple[EventRecord, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    revision: int = 0
    """The tree's revision at the first of these steps; 0 if they do not come from a step of a tree."""
    whole: bool = False
    """True if these are all rows of the tree, so that other open rows under its id are obsolete."""


class Written(Wire):
    """The store's answer to a write."""

    anew: bool = False
    """True if the workflow was reset, so that its state is older than the stored rows: it must write all rows."""
    refused: str = ""
    """Why the store will never accept these rows (ruling B6); empty if it took them."""
    event_shift: int = 0
    """The difference between the store's and the tree's own numbers of the tree's events."""


def merge_records(several: Sequence[Records]) -> Records | None:
    """Merge several writes into one, with the latest version of each row and every event."""
    if len(several) < 2:
        return several[0] if several else None
    return Records(
        task=next((each.task for each in reversed(several) if each.task), None),
        jobs=tuple({job.job_id: job for each in several for job in each.jobs}.values()),
        events=tuple(event for each in several for event in each.events),
        rounds=tuple({each.round_id: each for one in several for each in one.rounds}.values()),
        revision=several[0].revision,
    )


def shift_event(event: EventRecord, by: int) -> EventRecord:
    """Return the event renumbered for the store."""
    head, _, number = event.event_id.rpartition("-e")
    return event.model_copy(update={"event_id": f"{head}-e{int(number) + by}"}) if by else event
