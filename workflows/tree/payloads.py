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
    RECORD_REFUSED = "record_refused"
    RESULT_AMBIGUOUS = "result_ambiguous"
    RESULT_UNKNOWN_KEYS_DROPPED = "result_unknown_keys_dropped"


class Payload(BaseModel):
    """Exactly these keys, of exactly these kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


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
    """An operator ends the tree; the jobs that never start, and those that run on."""

    actor: str
    immediate: bool
    cancelled: list[str]
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
    """Who ended or extended a pause, from where, and how (ruling F6)."""

    actor: str
    channel: str
    verb: str
    round: int
    digest: str


class NotResumed(Payload):
    """Who tried to, and why it was refused (ruling F4)."""

    actor: str
    channel: str
    verb: str
    round: int | None
    why: str


class NotRecorded(Payload):
    """Why the store refused rows for good, and whose they are: they were written shortened (ruling B6)."""

    why: str
    jobs: list[str]


class Ambiguous(Payload):
    """More candidates than one in an agent's output (ruling A1)."""

    valid: int
    later_invalid: int


class KeysDropped(Payload):
    """Unknown keys of a result that was accepted without them (ruling A3)."""

    keys: list[str]


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
    EventKind.RECORD_REFUSED: NotRecorded,
    EventKind.RESULT_AMBIGUOUS: Ambiguous,
    EventKind.RESULT_UNKNOWN_KEYS_DROPPED: KeysDropped,
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
