"""All kinds of lifecycle and branch events (rulings B4, B7), apart from their payloads, which readers of rows do not
load.
"""

from enum import StrEnum

Data = dict[str, str | int | float | bool | list[str] | None]


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
    """Recorded only by releases whose jobs worked in the registered repository itself; their histories and rows contain
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
"""Events that notify people (ruling F8)."""


class BranchEventKind(StrEnum):
    """The kind of a branch event."""

    MERGED = "branch_merged"
    DROPPED = "branch_dropped"
    REVISED = "branch_revised"
    """A person commented on the branch's diff, and a job works on the comments."""
    LINE_CONFLICT = "line_conflict"
    """The branch conflicts with the line of its chain, and is not on it (ruling O3)."""
    REVIEW_ASKED = "review_asked"
    """A person ordered a review of what the tree's own reviews have not seen (ruling L10)."""
    KEPT = "work_kept"
    """The branch keeps the work of an attempt that had moved; its host has come back (ruling Q5)."""
