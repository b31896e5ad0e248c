"""The rows a tree writes of itself: its task, jobs, rounds and events. Those of pipeline runs: `pipeline/records`.

Every row carries the tree's `revision`, which only grows, so writing one twice or late changes nothing. Where the tree
cannot write any more, `policy/lost_trees` makes the same rows for it.
"""

from collections.abc import Sequence

from workflows.contract.models import Action, Decision
from workflows.model.jobs import Work
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.model.wire import Wire

RETRY = "service job retry"
"""What opens a blocked task again, followed by the job."""

DISMISS = "service job dismiss"
"""What ends a blocked task that nothing can open again, followed by the root."""

KILL = "service job kill"
"""What ends a tree, followed by any job of it; with `--now` at once."""


BATCH_BLOCKED = "its batch is blocked: "
"""How the reason of a job begins whose delegations are blocked."""


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
    reason: str = ""
    next: str = ""
    """What happens next, and the exact command that moves it, where a person can."""
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
    """Some of it was used by a model unknown to the price table, and counted at the mid tier (ruling K5)."""
    queued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    preflight_failed: str | None = None

    @property
    def batch_blocked(self) -> bool:
        """Nothing of what it delegated starts any more, and its coordinator does not run again (ruling D4)."""
        return self.reason.startswith(BATCH_BLOCKED)

    @property
    def work(self) -> tuple[str, ...]:
        """The branch of an implement job that succeeded, if it has one."""
        made = self.state is JobState.SUCCEEDED and self.action is Action.IMPLEMENT and self.branch
        return (self.branch,) if made and self.branch else ()

    def made(self, leg: str) -> tuple[Work, ...]:
        """Return it as work of a leg, or of a coordinator's own."""
        head = self.head_sha or ""
        return tuple(Work(leg=leg, job_id=self.job_id, branch=branch, head=head) for branch in self.work)


class TaskRecord(Wire):
    """The unit of work a tree belongs to."""

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
    """The job that opens it again when it is run again."""
    opened_at: float
    ended_at: float | None = None
    paused_seconds: float = 0.0
    """Time that is not the tree's: the pauses that are over (ruling F8)."""
    paused_since: float | None = None

    @property
    def why(self) -> str:
        """The reason where it tells more than the state; a task that is open simply goes on, unless it ends early."""
        return self.reason if self.state is not TaskState.OPEN or self.waits_for is WaitsFor.RUNS else ""

    def elapsed(self, now: float) -> float:
        """Wall-clock time without pauses (ruling C4)."""
        return max(0.0, (self.ended_at or self.paused_since or now) - self.opened_at - self.paused_seconds)


class QuestionRecord(Wire):
    """A question of a round, and its answer when it has one."""

    id: str
    prompt: str
    choices: tuple[str, ...] = ()
    job_id: str
    leg: str = ""
    """The leg that asks; empty when the coordinator itself does."""
    answer: str | None = None


class FailingRecord(Wire):
    """A failed leg of a round, and why it failed."""

    leg: str
    job_id: str
    attempt: int
    state: JobState
    reason: str = ""


class RoundRecord(Wire):
    """A pause as people see it, and all they need to end it (rulings F1, B3)."""

    round_id: str
    """`<coordinator>-r<number>`."""
    root_job_id: str
    coordinator_id: str
    """The job id that a resume names."""
    job_id: str
    """The coordinator's latest job."""
    task_id: str
    repo: str
    number: int
    kind: RoundKind
    digest: str
    """Of what it asks: a resume that names an older one is refused."""
    revision: int
    questions: tuple[QuestionRecord, ...] = ()
    failing: tuple[FailingRecord, ...] = ()
    verbs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The exact commands, one per verb."""
    opened_at: float
    expires_at: float
    end: RoundEnd | None = None
    """None while it is open."""
    closed_at: float | None = None
    closed: str = ""
    """Who ended it, how and when."""
    said: str = ""
    """What the person wrote."""


class EventRecord(Wire):
    """A lifecycle event (rulings B4, B7): `<job>-e<n>`, a kind, a typed payload, one line for people."""

    event_id: str
    seq: int = 0
    """Its place in the tree's one sequence, operators' events included; given by the store."""
    job_id: str
    root_job_id: str
    kind: str
    at: float
    message: str
    data: dict[str, str | int | float | bool | list[str] | None] = {}


class Records(Wire):
    """Everything one step of the tree changed, to be written in one transaction."""

    task: TaskRecord | None = None
    jobs: tuple[JobRecord, ...] = ()
    events: tuple[EventRecord, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    revision: int = 0
    """The tree's, of the first step they are of; 0 where no step of a tree made them."""
    whole: bool = False
    """These are all rows of the tree: what else is open under its id is not of its course any more."""


class Written(Wire):
    """What the store says to rows it has taken."""

    anew: bool = False
    """They are the first of a workflow that goes on from an earlier state than the rows': it must write them all."""
    refused: str = ""
    """Why it will never take them (ruling B6)."""
    event_shift: int = 0
    """So much further on the tree's events are numbered in the store than by itself."""


def merged(several: Sequence[Records]) -> Records | None:
    """Everything to be written in one go: the latest version of each row, every event."""
    if len(several) < 2:
        return several[0] if several else None
    return Records(
        task=next((each.task for each in reversed(several) if each.task), None),
        jobs=tuple({job.job_id: job for each in several for job in each.jobs}.values()),
        events=tuple(event for each in several for event in each.events),
        rounds=tuple({each.round_id: each for one in several for each in one.rounds}.values()),
        revision=several[0].revision,
    )


def shifted(event: EventRecord, by: int) -> EventRecord:
    """The event as the store numbers it."""
    head, _, number = event.event_id.rpartition("-e")
    return event.model_copy(update={"event_id": f"{head}-e{int(number) + by}"}) if by else event
