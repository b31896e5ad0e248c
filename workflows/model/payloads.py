"""The payload of each kind of lifecycle event, and its validation (ruling B4)."""

from pydantic import ValidationError

from workflows.model.event_kinds import EventKind
from workflows.model.event_payloads import (
    ActorPayload,
    AgentRefusedPayload,
    AmbiguousPayload,
    AttemptPayload,
    BatchSettledPayload,
    BlockPayload,
    BranchesPayload,
    BudgetWarningPayload,
    CaveatPayload,
    ContinuationPayload,
    Data,
    DelegationsPayload,
    DepthPayload,
    DollarsPayload,
    FinalizePayload,
    JobBegunPayload,
    JobBudgetPayload,
    JobEndedPayload,
    JobQueuedPayload,
    KeysDroppedPayload,
    KillPayload,
    LeftOutPayload,
    LoopPayload,
    Payload,
    PreflightPayload,
    QuestionsPayload,
    RecordRefusedPayload,
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
    EventKind.JOB_QUEUED: JobQueuedPayload,
    EventKind.JOB_BEGUN: JobBegunPayload,
    EventKind.JOB_ENDED: JobEndedPayload,
    EventKind.JOB_TAKEN_BACK: AttemptPayload,
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
    EventKind.RUN_STARTED_AGAIN: RunAgainPayload,
    EventKind.SESSION_NOT_RESUMED: SessionPayload,
    EventKind.TREE_CAVEAT: CaveatPayload,
    EventKind.BRANCH_PUT_BACK: BranchesPayload,
    EventKind.WORK_LEFT_OUT: LeftOutPayload,
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
