"""All kinds of lifecycle events, and the payload of each (rulings B4, B7)."""

from enum import StrEnum

from pydantic import ValidationError

from workflows.model.event_payloads import (
    ActorPayload,
    AgentRefusedPayload,
    AmbiguousPayload,
    AttemptPayload,
    BatchSettledPayload,
    BlockPayload,
    BudgetWarningPayload,
    CaveatPayload,
    ContinuationPayload,
    Data,
    DelegationsPayload,
    DepthPayload,
    DollarsPayload,
    EditsPayload,
    FinalizePayload,
    JobBegunPayload,
    JobBudgetPayload,
    JobEndedPayload,
    JobQueuedPayload,
    KeysDroppedPayload,
    KillPayload,
    LeftOutPayload,
    LoopPayload,
    MovedPayload,
    NothingChangedPayload,
    Payload,
    PreflightPayload,
    QuestionsPayload,
    RecordRefusedPayload,
    RepairPayload,
    ReplansPayload,
    ResumePayload,
    ResumeRefusedPayload,
    RoundEndPayload,
    RoundPayload,
    RunAgainPayload,
    SessionPayload,
    TakeUpPayload,
    TokensPayload,
    TreeEndedPayload,
    TreeLostPayload,
    TreeStartedPayload,
    WalltimePayload,
    WidthPayload,
)


class EventKind(StrEnum):
    """The kind of an event. The names of the first two groups are the spec's."""

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
    TREE_CUT_SHORT = "tree_cut_short"
    JOB_QUEUED = "job_queued"
    JOB_BEGUN = "job_begun"
    JOB_ENDED = "job_ended"
    JOB_TAKEN_BACK = "job_taken_back"
    JOB_MOVED = "job_moved"
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
    RECORD_REFUSED = "record_refused"
    RESULT_AMBIGUOUS = "result_ambiguous"
    RESULT_UNKNOWN_KEYS_DROPPED = "result_unknown_keys_dropped"
    RESULT_REPAIRED = "result_repaired"
    RUN_STARTED_AGAIN = "run_started_again"
    SESSION_NOT_RESUMED = "session_not_resumed"
    TREE_CAVEAT = "tree_caveat"
    """Recorded by releases whose jobs worked in the registered repository itself; their histories and rows contain
    it.
    """
    WORK_LEFT_OUT = "work_left_out"
    EDITS_DISCARDED = "edits_discarded"
    NOTHING_CHANGED = "nothing_changed"
    AGENT_REFUSED = "agent_refused"
    """An agent called an operation that only people may order (ruling N5)."""


TELLS_PEOPLE = frozenset(
    {
        EventKind.ROUND_OPENED,
        EventKind.ROUND_JOINED,
        EventKind.ROUND_REMINDER,
        EventKind.ROUND_EXPIRED,
        EventKind.TASK_BLOCKED,
        EventKind.TREE_CUT_SHORT,
        EventKind.TREE_LOST,
        EventKind.RECORD_REFUSED,
    }
)
"""Events of which people are notified, wherever they are (ruling F8)."""


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
    """Raise if a payload does not fit its kind: that is a bug, like a move that is not in the table."""
    try:
        PAYLOADS[EventKind(kind)].model_validate(data)
    except ValidationError as error:
        raise UnfitPayloadError(f"event {kind}: {error}") from None
    except (ValueError, KeyError):
        raise UnfitPayloadError(f"event {kind} is not in EventKind and PAYLOADS: add it with its model") from None
