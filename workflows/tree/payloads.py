"""What every lifecycle event carries: a closed set of kinds, and one model of the payload for each (ruling B4).

In the store and on the wire a payload is a plain object; these models say which keys it has.
"""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

Data = dict[str, str | int | float | bool | list[str] | None]


class EventKind(StrEnum):
    """Every kind there is. The names of the first two groups are the spec's."""

    DELEGATION_PREFLIGHT_FAILED = "delegation_preflight_failed"
    DELEGATION_WALLTIME_EXCEEDED = "delegation_walltime_exceeded"
    DELEGATION_COST_EXCEEDED = "delegation_cost_exceeded"
    DELEGATION_COST_USD_EXCEEDED = "delegation_cost_usd_exceeded"
    DELEGATION_WIDTH_EXCEEDED = "delegation_width_exceeded"
    DELEGATION_LOOP_WARNING = "delegation_loop_warning"
    DELEGATION_LOOP_DETECTED = "delegation_loop_detected"
    DELEGATION_KILLED = "delegation_killed"
    DELEGATION_FINALIZE_ENQUEUED = "delegation_finalize_enqueued"
    DELEGATION_FINALIZED = "delegation_finalized"

    DELEGATION_DEPTH_EXCEEDED = "delegation_depth_exceeded"
    DELEGATION_BUDGET_EXCEEDED = "delegation_budget_exceeded"

    TREE_STARTED = "tree_started"
    TREE_ENDED = "tree_ended"
    JOB_QUEUED = "job_queued"
    JOB_BEGUN = "job_begun"
    JOB_ENDED = "job_ended"
    JOB_TAKEN_BACK = "job_taken_back"
    BATCH_SETTLED = "batch_settled"
    CONTINUATION_ENQUEUED = "continuation_enqueued"

    DELEGATION_BUDGET_WARNING = "delegation_budget_warning"
    DELEGATION_DROPPED = "delegation_dropped"
    DELEGATION_IGNORED_EPHEMERAL = "delegation_ignored_ephemeral"
    VERIFY_REPLAN_EXHAUSTED = "verify_replan_exhausted"
    TASK_BLOCKED = "task_blocked"
    RETRY_REQUESTED = "retry_requested"
    RETRY_REFUSED = "retry_refused"
    HUMAN_QUESTIONS_IGNORED = "human_questions_ignored"
    HUMAN_QUESTIONS_DEFERRED = "human_questions_deferred"
    ROUND_OPENED = "round_opened"
    ROUND_JOINED = "round_joined"
    ROUND_REMINDER = "round_reminder"
    ROUND_EXTENDED = "round_extended"
    ROUND_EXPIRED = "round_expired"
    ROUND_CLOSED = "round_closed"
    RESUME_ACCEPTED = "resume_accepted"
    RESUME_REFUSED = "resume_refused"
    TREE_LOST = "tree_lost"
    TREE_TAKEN_UP = "tree_taken_up"
    TASK_DISMISSED = "task_dismissed"
    RESULT_AMBIGUOUS = "result_ambiguous"
    RESULT_UNKNOWN_KEYS_DROPPED = "result_unknown_keys_dropped"
    RUN_STARTED_AGAIN = "run_started_again"
    SESSION_NOT_RESUMED = "session_not_resumed"
    TREE_CAVEAT = "tree_caveat"
    BRANCH_PUT_BACK = "branch_put_back"


class Payload(BaseModel):
    """Exactly these keys, of exactly these kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Started(Payload):
    """A tree begins: on which host, for whose task, what is asked of whom."""

    task: str
    agent: str
    action: str


class TreeOver(Payload):
    """A tree is closed; a blocked one can be opened again."""

    state: str
    jobs: int
    tokens: int
    cost_usd: float
    cost_assumed: bool
    elapsed: float


class Queued(Payload):
    """A job, or a new attempt of it, waits for its turn."""

    leg: str | None
    agent: str
    action: str
    attempt: int


class Begun(Payload):
    """The host of an attempt has begun it."""

    attempt: int
    runtime: str
    model: str | None


class Ended(Payload):
    """A job has ended, or never ran; what all its attempts used."""

    attempt: int
    state: str
    decision: str | None
    tokens: int
    cost_usd: float
    cost_assumed: bool


class Attempted(Payload):
    """Which attempt of the job."""

    attempt: int


class Settled(Payload):
    """Every leg of a batch has ended: how many in which state, and what the rules make of it."""

    coordinator: str
    verdict: Literal["proceed", "block", "replan", "stopped", "ending"]
    reason: str
    legs: list[str]
    """`<leg>: <state>`, in the order of the result."""


class Continued(Payload):
    """A coordinator runs again: after which job, and why."""

    after: str
    flavour: str
    notes: list[str]


class Unroutable(Payload):
    """Workers of a set cannot be had; nothing of it is dispatched (ruling C6)."""

    faults: list[str]
    """One line per fault; says so when a name is a runtime's."""
    valid_agents: list[str]
    alternative: str
    """The ephemeral worker that would do instead."""


class TimeSpent(Payload):
    """The wall-clock budget is used up."""

    elapsed: float
    budget: float


class TokensSpent(Payload):
    """The token budget is used up."""

    tokens: int
    budget: int


class DollarsSpent(Payload):
    """The dollar budget is used up."""

    cost_usd: float
    budget: float
    price_assumed: bool = False


class TooWide(Payload):
    """One result asks for more delegations than the cap."""

    width: int
    cap: int


class TooDeep(Payload):
    """A job at the depth cap delegates."""

    depth: int
    cap: int


class TooMany(Payload):
    """New jobs would cross the per-root job budget."""

    new_jobs: int
    jobs: int
    cap: int


class Loop(Payload):
    """A rung of the ladder, and which of its two signals climbed it (rulings H2, H3)."""

    signal: Literal["signature", "progress"]
    streak: int


class Killed(Payload):
    """An operator ends the tree; the jobs that never start, those asked back from their host, those that run on."""

    actor: str
    immediate: bool
    cancelled: list[str]
    asked_back: list[str]
    running: list[str]


class FinalizeEnqueued(Payload):
    """The tree's last job, and the kind of event that asked for it."""

    cause: str
    reason: str


class Ignored(Payload):
    """Delegations that are not dispatched, by id."""

    delegations: list[str]


class BudgetNear(Payload):
    """A budget is used to 80 % (ruling C4)."""

    of: Literal["jobs", "wall_clock", "tokens", "cost_usd"]
    used: float
    budget: float


class ReplansSpent(Payload):
    """Every replan attempt of the root is used (ruling E5)."""

    attempts: int


class Blocked(Payload):
    """The task is blocked; the job whose retry opens it again."""

    retry: str


class Ordered(Payload):
    """Who gave the order."""

    actor: str


class Lost(Payload):
    """Its workflow was ended from outside: the jobs that ended with it, and the command to type."""

    jobs: list[str]
    next: str


class TakenUp(Payload):
    """Who has it go on, and the jobs that run again."""

    actor: str
    again: list[str]


class Questions(Payload):
    """Questions to people, by id."""

    questions: list[str]


class RoundOpen(Payload):
    """A pause, as it stands: what is asked by id or leg, until when, and the commands that end it (ruling F1)."""

    round: int
    kind: str
    digest: str
    asks: list[str]
    commands: list[str]
    expires_at: float
    handle: str | None
    """Who is to be told, when the settings name somebody."""


class RoundOver(Payload):
    """A pause that no person ended."""

    round: int
    kind: str
    end: str


class Resumed(Payload):
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


class NotResumed(Payload):
    """Who tried to, and why it was refused (ruling F4)."""

    actor: str
    channel: str
    verb: str
    round: int | None
    why: str


class Ambiguous(Payload):
    """More candidates than one in an agent's output (ruling A1)."""

    valid: int
    later_invalid: int


class KeysDropped(Payload):
    """Unknown keys of a result that was accepted without them (ruling A3)."""

    keys: list[str]


class StartedAgain(Payload):
    """A reader's program was started a second time, because nobody saw how the first one ended."""

    attempt: int


class Caveat(Payload):
    """What the tree's result must be read with."""

    caveat: str


class PutBack(Payload):
    """Branches that a reader had moved (ruling I2)."""

    branches: list[str]


class BegunAfresh(Payload):
    """A continuation began a session of its own where it should have gone on in one (ruling K3)."""

    session: str | None
    why: str


PAYLOADS: dict[EventKind, type[Payload]] = {
    EventKind.DELEGATION_PREFLIGHT_FAILED: Unroutable,
    EventKind.DELEGATION_WALLTIME_EXCEEDED: TimeSpent,
    EventKind.DELEGATION_COST_EXCEEDED: TokensSpent,
    EventKind.DELEGATION_COST_USD_EXCEEDED: DollarsSpent,
    EventKind.DELEGATION_WIDTH_EXCEEDED: TooWide,
    EventKind.DELEGATION_LOOP_WARNING: Loop,
    EventKind.DELEGATION_LOOP_DETECTED: Loop,
    EventKind.DELEGATION_KILLED: Killed,
    EventKind.DELEGATION_FINALIZE_ENQUEUED: FinalizeEnqueued,
    EventKind.DELEGATION_FINALIZED: Ignored,
    EventKind.DELEGATION_DEPTH_EXCEEDED: TooDeep,
    EventKind.DELEGATION_BUDGET_EXCEEDED: TooMany,
    EventKind.TREE_STARTED: Started,
    EventKind.TREE_ENDED: TreeOver,
    EventKind.JOB_QUEUED: Queued,
    EventKind.JOB_BEGUN: Begun,
    EventKind.JOB_ENDED: Ended,
    EventKind.JOB_TAKEN_BACK: Attempted,
    EventKind.BATCH_SETTLED: Settled,
    EventKind.CONTINUATION_ENQUEUED: Continued,
    EventKind.DELEGATION_BUDGET_WARNING: BudgetNear,
    EventKind.DELEGATION_DROPPED: Ignored,
    EventKind.DELEGATION_IGNORED_EPHEMERAL: Ignored,
    EventKind.VERIFY_REPLAN_EXHAUSTED: ReplansSpent,
    EventKind.TASK_BLOCKED: Blocked,
    EventKind.RETRY_REQUESTED: Ordered,
    EventKind.RETRY_REFUSED: Ordered,
    EventKind.HUMAN_QUESTIONS_IGNORED: Questions,
    EventKind.HUMAN_QUESTIONS_DEFERRED: Questions,
    EventKind.ROUND_OPENED: RoundOpen,
    EventKind.ROUND_JOINED: RoundOpen,
    EventKind.ROUND_REMINDER: RoundOpen,
    EventKind.ROUND_EXTENDED: RoundOpen,
    EventKind.ROUND_EXPIRED: RoundOver,
    EventKind.ROUND_CLOSED: RoundOver,
    EventKind.RESUME_ACCEPTED: Resumed,
    EventKind.RESUME_REFUSED: NotResumed,
    EventKind.TREE_LOST: Lost,
    EventKind.TREE_TAKEN_UP: TakenUp,
    EventKind.TASK_DISMISSED: Ordered,
    EventKind.RESULT_AMBIGUOUS: Ambiguous,
    EventKind.RESULT_UNKNOWN_KEYS_DROPPED: KeysDropped,
    EventKind.RUN_STARTED_AGAIN: StartedAgain,
    EventKind.SESSION_NOT_RESUMED: BegunAfresh,
    EventKind.TREE_CAVEAT: Caveat,
    EventKind.BRANCH_PUT_BACK: PutBack,
}


class UnfitPayloadError(Exception):
    """The engine told of an event that has no kind, or not this payload."""


def check_payload(kind: str, data: Data) -> None:
    """A payload that does not fit its kind is a bug, and raises, like a move that is not in the table."""
    try:
        PAYLOADS[EventKind(kind)].model_validate(data)
    except ValidationError as error:
        raise UnfitPayloadError(f"event {kind}: {error}") from None
    except (ValueError, KeyError):
        raise UnfitPayloadError(f"event {kind} is not in EventKind and PAYLOADS: add it with its model") from None
