"""The states of jobs and tasks, and every allowed transition (ruling B2)."""

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job (ruling B2)."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def has_ended(self) -> bool:
        """True if the job's latest attempt is over."""
        return self in ENDED_JOBS

    @property
    def in_a_sentence(self) -> str:
        """Return what is said after a job's name: it failed, it was cancelled."""
        return self.value if self in (JobState.FAILED, JobState.SUCCEEDED) else f"was {self.value}"


class TaskState(StrEnum):
    """The state of a task (ruling B2). A pause is a state of the task, not of a job."""

    OPEN = "open"
    AWAITING_HUMAN = "awaiting_human"
    BLOCKED = "blocked"
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """True if nothing can open the task again."""
        return self in ENDED_TASKS

    @property
    def is_closed(self) -> bool:
        """True if the task has ended, or is blocked until somebody acts."""
        return self not in OPEN_TASKS


class WaitsFor(StrEnum):
    """What a task or a job waits for, in one word; its `next` says it in a sentence (B3)."""

    NOTHING = ""
    """The task or job continues by itself, or has ended; `next` names no command."""
    RUNS = "runs"
    """The task ends early, once the running jobs have ended."""
    RESUME = "resume"
    """A person has to end a pause."""
    RETRY = "retry"
    """An operator has to run a job again."""
    DISMISS = "dismiss"
    """Nothing can reopen the task: an operator has to dismiss it."""
    START = "start"
    """The tree is lost, or a bound cut it short: an operator has to start its task again as a new tree."""


class Continuation(StrEnum):
    """Why a coordinator runs again (ruling D1)."""

    NONE = "none"
    NORMAL = "normal"
    CORRECTIVE = "corrective"
    REPLAN = "replan"
    ANSWERED = "answered"
    FINALIZE = "finalize"


_AGAIN = frozenset({JobState.QUEUED})


JOB_MOVES: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.SKIPPED, JobState.CANCELLED})
    | {JobState.SUCCEEDED}  # a recipe's root never runs: its legs are its result
    | {JobState.FAILED, JobState.BLOCKED},  # a retry that was pending when the tree began to end
    JobState.RUNNING: frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED}),
    # Retries and operators' re-runs are new attempts of a job (rulings D3, D4).
    JobState.SUCCEEDED: _AGAIN,
    JobState.FAILED: _AGAIN,
    JobState.BLOCKED: _AGAIN,
    JobState.CANCELLED: _AGAIN,
    JobState.SKIPPED: _AGAIN,
}


TASK_MOVES: dict[TaskState, frozenset[TaskState]] = {
    TaskState.OPEN: frozenset({TaskState.AWAITING_HUMAN, TaskState.BLOCKED, TaskState.DONE, TaskState.CANCELLED}),
    TaskState.AWAITING_HUMAN: frozenset({TaskState.OPEN, TaskState.BLOCKED, TaskState.CANCELLED}),
    TaskState.BLOCKED: frozenset({TaskState.OPEN, TaskState.CANCELLED}),
    TaskState.DONE: frozenset(),
    TaskState.CANCELLED: frozenset(),
}


class IllegalMoveError(Exception):
    """The reducer tried a transition that is not in the table."""


def check_job(job_id: str, old: JobState, new: JobState) -> None:
    """Raise if the transition is not in the table. A state may always stay the same."""
    if new is not old and new not in JOB_MOVES[old]:
        raise IllegalMoveError(f"job {job_id}: {old} -> {new} is not allowed")


def check_task(old: TaskState, new: TaskState) -> None:
    """Raise if the transition is not in the table. A state may always stay the same."""
    if new is not old and new not in TASK_MOVES[old]:
        raise IllegalMoveError(f"task: {old} -> {new} is not allowed")


ENDED_JOBS = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED, JobState.SKIPPED})
ENDED_TASKS = frozenset({TaskState.DONE, TaskState.CANCELLED})
OPEN_TASKS = frozenset({TaskState.OPEN, TaskState.AWAITING_HUMAN})


FAILING = frozenset({JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED})
"""States that count as a failing child (ruling D2)."""
