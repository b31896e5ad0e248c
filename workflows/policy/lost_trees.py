"""The rows of a tree whose workflow was ended from outside, and so cannot write them itself (ruling G2)."""

from collections.abc import Iterable

from workflows.model.event_kinds import EventKind
from workflows.model.rounds import RoundEnd
from workflows.model.rows import RETRY, EventRecord, JobRecord, Records, RoundRecord, TaskRecord
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.text.durations import clock

REASON_LIMIT = 300
_NO_WAY_ON = {"next": "", "waits_for": WaitsFor.NOTHING}


def is_open(task: TaskRecord, jobs: Iterable[JobRecord]) -> bool:
    """Return whether the rows show an active workflow."""
    return not task.state.is_closed or any(not job.state.has_ended for job in jobs)


def lost_rows(
    task: TaskRecord,
    jobs: Iterable[JobRecord],
    rounds: Iterable[RoundRecord],
    *,
    why: str,
    anew: str,
    number: int,
    now: float,
) -> Records:
    """End every open row with the reason. `anew` is the command that starts the tree from its beginning; empty if a
    retry can continue it.
    """
    why, root = " ".join(why.split())[:REASON_LIMIT], task.root_job_id
    what_next = anew or f"{RETRY} {root}"
    state = TaskState.CANCELLED if anew else TaskState.BLOCKED
    waits_for = WaitsFor.START if anew else WaitsFor.RETRY
    left = {"reason": why, "next": what_next, "waits_for": waits_for, "ended_at": now}
    opens = {"revision": task.revision + 1, "state": state, "to_retry": "" if anew else root}
    still = [job for job in jobs if not job.state.has_ended]
    return Records(
        task=task.model_copy(update=_pause_over(task, now) | left | opens),
        jobs=tuple(
            job.model_copy(update=left | {"revision": job.revision + 1, "state": JobState.CANCELLED}) for job in still
        ),
        rounds=tuple(_close_round(each, why, now) for each in rounds if each.end is None),
        events=(
            EventRecord(
                event_id=f"{root}-e{number}",
                job_id=root,
                root_job_id=root,
                kind=EventKind.TREE_LOST,
                at=now,
                message=f"{why}; next: {what_next}",
                data={"jobs": [job.job_id for job in still], "next": what_next},
            ),
        ),
    )


def dismissed_rows(task: TaskRecord, *, actor: str, number: int, now: float) -> Records:
    """Return the rows of a blocked task that is dismissed permanently."""
    reason = f"dismissed by {actor}; it was blocked: {task.reason}"[:REASON_LIMIT]
    root, update = (
        task.root_job_id,
        {"state": TaskState.CANCELLED, "reason": reason, "ended_at": now, "to_retry": ""} | _NO_WAY_ON,
    )
    event = EventRecord(
        event_id=f"{root}-e{number}",
        job_id=root,
        root_job_id=root,
        kind=EventKind.TASK_DISMISSED,
        at=now,
        message=reason,
        data={"actor": actor},
    )
    return Records(task=task.model_copy(update=update | {"revision": task.revision + 1}), events=(event,))


def given_up(
    jobs: Iterable[JobRecord], rounds: Iterable[RoundRecord], whole: Records, *, revision: int, now: float
) -> Records:
    """Cancel stored rows that a reset tree does not have: they belong to the history before the reset."""
    known = {job.job_id for job in whole.jobs} | {each.round_id for each in whole.rounds}
    why = "given up: the task was reset to a moment before it"
    left = {"reason": why, "ended_at": now, "revision": revision, "state": JobState.CANCELLED} | _NO_WAY_ON
    gone = [job for job in jobs if job.job_id not in known and not job.state.has_ended]
    lost = [each for each in rounds if each.round_id not in known and each.end is None]
    return Records(
        jobs=tuple(job.model_copy(update=left) for job in gone),
        rounds=tuple(_close_round(each, why, now).model_copy(update={"revision": revision}) for each in lost),
    )


def _close_round(record: RoundRecord, why: str, now: float) -> RoundRecord:
    update: dict[str, object] = {"end": RoundEnd.KILLED, "closed_at": now, "verbs": (), "commands": ()}
    closed = f"{RoundEnd.KILLED} by the end of its workflow at {clock(now)}: {why}"
    return record.model_copy(update=update | {"closed": closed, "revision": record.revision + 1})


def _pause_over(task: TaskRecord, now: float) -> dict[str, object]:
    if task.paused_since is None:
        return {}
    return {"paused_seconds": task.paused_seconds + now - task.paused_since, "paused_since": None}
