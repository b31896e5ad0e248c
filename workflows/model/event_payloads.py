"""The payload of each kind of event. Its classes are ordered by subject: an agent's run, people, the tree, branches
(B4, I5).
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from workflows.model.event_kinds import Data, EventKind


class Payload(BaseModel):
    """A payload with exactly its declared keys and types. The class is built when its first event occurs: most are
    never used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class RecordRefusedPayload(Payload):
    """Why the store rejected rows permanently, and the jobs of these rows. The rows were then written shortened (ruling
    B6).
    """

    why: str
    jobs: list[str]


class AmbiguousPayload(Payload):
    """The numbers of valid and invalid candidates in an agent's output that had several (ruling A1)."""

    valid: int
    later_invalid: int


class KeysDroppedPayload(Payload):
    """Unknown keys of a result that was accepted without them (ruling A3)."""

    keys: list[str]


class RepairPayload(Payload):
    """The faults of a result that its agent was asked to correct, and whether it did (ruling A5)."""

    faults: list[str]
    accepted: bool


class RunAgainPayload(Payload):
    """A reader's program was started a second time, because the end of the first one was not seen."""

    attempt: int


class CaveatPayload(Payload):
    """The caveat of the tree's result."""

    caveat: str


class LeftOutPayload(Payload):
    """Files in a work folder that no commit can hold, or that a person should know of (ruling N3)."""

    found: list[str]


class EditsPayload(Payload):
    """Files that a job changed and names in its result, although its action is only ask or review (ruling I2)."""

    files: list[str]


class NothingChangedPayload(Payload):
    """The number of changes that an implement job claims although no file changed (ruling I4)."""

    claims: int


class SessionPayload(Payload):
    """A continuation started a new session instead of resuming one (ruling K3)."""

    session: str | None
    why: str


class BlockPayload(Payload):
    """The task is blocked. Contains the job whose retry opens the task again, or ""."""

    retry: str


class ActorPayload(Payload):
    """The actor of an order."""

    actor: str


class AgentRefusedPayload(Payload):
    """An agent called an operation that only people may order."""

    job_id: str
    order: str


class TreeLostPayload(Payload):
    """The tree's workflow was ended from outside. Contains the jobs that ended with it, and the next command."""

    jobs: list[str]
    next: str


class TakeUpPayload(Payload):
    """The actor who continues a lost tree, and the jobs that run again."""

    actor: str
    again: list[str]


class QuestionsPayload(Payload):
    """Questions to people, by id."""

    questions: list[str]


class RoundPayload(Payload):
    """A pause: its questions by id or leg, its deadline, and the commands that end it (ruling F1)."""

    round: int
    kind: str
    digest: str
    asks: list[str]
    commands: list[str]
    expires_at: float
    handle: str | None
    """The handle to mention, if the settings name one."""


class RoundEndPayload(Payload):
    """A pause that ended without a person's resume."""

    round: int
    kind: str
    end: str


class ResumePayload(Payload):
    """The end or extension of a pause: who ordered it by which channel (ruling F6), and what was recorded (ruling
    F5).
    """

    actor: str
    channel: str
    verb: str
    round: int
    digest: str
    recorded: list[str]
    """One line each: an answer with its id, a question that stays open, words taken as guidance."""
    unanswered: list[str]
    unmatched: list[str]
    """Unknown ids in the answer."""
    request: str = ""
    """The request's idempotency key, by which a repeat is recognised, however late."""


class ResumeRefusedPayload(Payload):
    """A refused resume: its actor, and the reason (ruling F4)."""

    actor: str
    channel: str
    verb: str
    round: int | None
    why: str


class TreeStartedPayload(Payload):
    """The start of a tree: its task, agent and action."""

    task: str
    agent: str
    action: str


class TreeEndedPayload(Payload):
    """A tree is closed; a blocked one can be opened again."""

    state: str
    jobs: int
    tokens: int
    cost_usd: float
    cost_assumed: bool
    elapsed: float


class JobQueuedPayload(Payload):
    """A job, or a new attempt of it, is queued."""

    leg: str | None
    agent: str
    action: str
    attempt: int


class JobBegunPayload(Payload):
    """The host has begun an attempt."""

    attempt: int
    runtime: str
    model: str | None


class JobEndedPayload(Payload):
    """A job has ended, or never ran. Contains the tokens and cost of all its attempts."""

    attempt: int
    state: str
    decision: str | None
    tokens: int
    cost_usd: float
    cost_assumed: bool


class AttemptPayload(Payload):
    """An attempt of the job."""

    attempt: int


class MovedPayload(Payload):
    """An attempt ended with its host, begun or not; its job is offered to another host (ruling Q5)."""

    attempt: int
    begun: bool
    reason: str


class BatchSettledPayload(Payload):
    """Every leg of a batch has ended. Contains their states and the rules' verdict."""

    coordinator: str
    verdict: Literal["proceed", "block", "replan", "stopped", "ending"]
    reason: str
    legs: list[str]
    """`<leg>: <state>`, in the order of the result."""


class ContinuationPayload(Payload):
    """A coordinator runs again. Contains its previous job, and the reason."""

    after: str
    flavour: str
    notes: list[str]


class PreflightPayload(Payload):
    """Workers of a set are not available, so the whole set is not dispatched (ruling C6)."""

    faults: list[str]
    """One line per fault; it says so if a runtime's name was given as an agent."""
    valid_agents: list[str]
    alternative: str
    """An ephemeral worker that could do the work instead."""


class WalltimePayload(Payload):
    """The wall-clock budget is used up."""

    elapsed: float
    budget: float


class TokensPayload(Payload):
    """The token budget is used up."""

    tokens: int
    budget: int


class DollarsPayload(Payload):
    """The dollar budget is used up."""

    cost_usd: float
    budget: float
    price_assumed: bool = False


class WidthPayload(Payload):
    """One result has more delegations than allowed."""

    width: int
    cap: int


class DepthPayload(Payload):
    """A job at the depth limit delegates."""

    depth: int
    cap: int


class JobBudgetPayload(Payload):
    """New jobs would exceed the tree's job budget."""

    new_jobs: int
    jobs: int
    cap: int


class LoopPayload(Payload):
    """A rung of the loop ladder, and which of the two signals reached it (rulings H2, H3)."""

    signal: Literal["signature", "progress"]
    streak: int


class KillPayload(Payload):
    """An operator ends the tree. Contains the jobs that never start, the jobs that their hosts are asked to return, and
    the jobs that keep running.
    """

    actor: str
    immediate: bool
    cancelled: list[str]
    asked_back: list[str]
    running: list[str]


class FinalizePayload(Payload):
    """Why the tree's last job runs, and the kind of event that caused it."""

    cause: str
    reason: str


class DelegationsPayload(Payload):
    """Delegations that are not dispatched, by id."""

    delegations: list[str]


class BudgetWarningPayload(Payload):
    """80 % of a budget is used (ruling C4)."""

    of: Literal["jobs", "wall_clock", "tokens", "cost_usd"]
    used: float
    budget: float


class ReplansPayload(Payload):
    """All replan attempts of the root are used up (ruling E5)."""

    attempts: int


class BranchEvent(Payload):
    """An order on a branch: its actor, the branch and its commit, and the task branch, with whether it was merged
    there.
    """

    actor: str
    branch: str
    head_sha: str
    task_branch: str
    merged: bool
    anyway: str = ""
    """The objection that the merge overrode."""
    review: str = ""
    """The job that was asked to review the commit."""
    leg: str = ""
    against: list[str] = []
    """The branches on the line that touch the same files."""
    files: list[str] = []
    by: str = ""
    """The job that works on a person's comments on the diff."""
    comments: list[str] = []


PAYLOADS: dict[EventKind, type[Payload]] = {
    EventKind.DELEGATION_PREFLIGHT_FAILED: PreflightPayload,
    EventKind.DELEGATION_WALLTIME_EXCEEDED: WalltimePayload,
    EventKind.DELEGATION_COST_EXCEEDED: TokensPayload,
    EventKind.DELEGATION_COST_USD_EXCEEDED: DollarsPayload,
    EventKind.DELEGATION_WIDTH_EXCEEDED: WidthPayload,
    EventKind.DELEGATION_LOOP_WARNING: LoopPayload,
    EventKind.DELEGATION_LOOP_DETECTED: LoopPayload,
    EventKind.DELEGATION_KILLED: KillPayload,
    EventKind.DELEGATION_FINALIZE_ENQUEUED: FinalizePayload,
    EventKind.DELEGATION_FINALIZED: DelegationsPayload,
    EventKind.DELEGATION_DEPTH_EXCEEDED: DepthPayload,
    EventKind.DELEGATION_BUDGET_EXCEEDED: JobBudgetPayload,
    EventKind.TREE_STARTED: TreeStartedPayload,
    EventKind.TREE_ENDED: TreeEndedPayload,
    EventKind.TREE_CUT_SHORT: FinalizePayload,
    EventKind.JOB_QUEUED: JobQueuedPayload,
    EventKind.JOB_BEGUN: JobBegunPayload,
    EventKind.JOB_ENDED: JobEndedPayload,
    EventKind.JOB_TAKEN_BACK: AttemptPayload,
    EventKind.JOB_MOVED: MovedPayload,
    EventKind.BATCH_SETTLED: BatchSettledPayload,
    EventKind.CONTINUATION_ENQUEUED: ContinuationPayload,
    EventKind.DELEGATION_BUDGET_WARNING: BudgetWarningPayload,
    EventKind.DELEGATION_DROPPED: DelegationsPayload,
    EventKind.DELEGATION_IGNORED_EPHEMERAL: DelegationsPayload,
    EventKind.VERIFY_REPLAN_EXHAUSTED: ReplansPayload,
    EventKind.TASK_BLOCKED: BlockPayload,
    EventKind.RETRY_REQUESTED: ActorPayload,
    EventKind.RETRY_REFUSED: ActorPayload,
    EventKind.HUMAN_QUESTIONS_IGNORED: QuestionsPayload,
    EventKind.HUMAN_QUESTIONS_DEFERRED: QuestionsPayload,
    EventKind.ROUND_OPENED: RoundPayload,
    EventKind.ROUND_JOINED: RoundPayload,
    EventKind.ROUND_REMINDER: RoundPayload,
    EventKind.ROUND_EXTENDED: RoundPayload,
    EventKind.ROUND_EXPIRED: RoundEndPayload,
    EventKind.ROUND_CLOSED: RoundEndPayload,
    EventKind.RESUME_ACCEPTED: ResumePayload,
    EventKind.RESUME_REFUSED: ResumeRefusedPayload,
    EventKind.TREE_LOST: TreeLostPayload,
    EventKind.TREE_TAKEN_UP: TakeUpPayload,
    EventKind.TASK_DISMISSED: ActorPayload,
    EventKind.RECORD_REFUSED: RecordRefusedPayload,
    EventKind.RESULT_AMBIGUOUS: AmbiguousPayload,
    EventKind.RESULT_UNKNOWN_KEYS_DROPPED: KeysDroppedPayload,
    EventKind.RESULT_REPAIRED: RepairPayload,
    EventKind.RUN_STARTED_AGAIN: RunAgainPayload,
    EventKind.SESSION_NOT_RESUMED: SessionPayload,
    EventKind.TREE_CAVEAT: CaveatPayload,
    EventKind.WORK_LEFT_OUT: LeftOutPayload,
    EventKind.EDITS_DISCARDED: EditsPayload,
    EventKind.NOTHING_CHANGED: NothingChangedPayload,
    EventKind.AGENT_REFUSED: AgentRefusedPayload,
}


class UnfitPayloadError(Exception):
    """An event's kind is unknown, or its payload does not fit its kind."""


def check_payload(kind: str, data: Data) -> None:
    """Raise if a payload does not fit its kind, which is a bug."""
    try:
        PAYLOADS[EventKind(kind)].model_validate(data)
    except ValidationError as error:
        raise UnfitPayloadError(f"event {kind}: {error}") from None
    except (ValueError, KeyError):
        raise UnfitPayloadError(f"event {kind} is not in EventKind and PAYLOADS: add it with its model") from None
