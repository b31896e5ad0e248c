"""The complete text of a notification: questions, failures, deadline, cost, commands to type (ruling F8)."""

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import Engine

from activities.store import job_rows, round_rows, tree_rows
from activities.store.outbox import Notification
from workflows.model.rows import JobRecord, RoundRecord
from workflows.model.settings import Bounds
from workflows.model.states import JobState, WaitsFor
from workflows.policy.bounds import ledger_of
from workflows.policy.host_availability import HOST_UNSEEN, way_to_move
from workflows.text.durations import clock
from workflows.text.invisible import one_line
from workflows.tree.details import plain, spend

TEXT_SHOWN = 600
MOST_FAILING = 20
_SOMEBODY = frozenset({WaitsFor.RESUME, WaitsFor.RETRY, WaitsFor.DISMISS, WaitsFor.START})
_BADLY = frozenset({JobState.FAILED, JobState.BLOCKED})


def complete(store: Engine, notification: Notification, dashboard: str = "") -> Notification:
    """Add all current facts that a person needs who sees only this notification."""
    task = job_rows.task_of(store, notification.root_job_id)
    if task is None:
        typed = (way_to_move(notification.job_id),) if notification.kind == HOST_UNSEEN else ()
        return replace(notification, text="\n".join(map(one_line, (notification.message, *typed))), commands=typed)
    known = job_rows.tree(store, notification.root_job_id)
    used = ledger_of(task, known, notification.at)
    waiting = _round(store, notification)
    failing = [] if waiting else [job for job in known if job.state in _BADLY][:MOST_FAILING]
    kept = tree_rows.get(store, notification.root_job_id)
    cost = spend(kept.start.settings.bounds if kept else Bounds(), used)
    going_on = (task.next,) if task.waits_for in _SOMEBODY else ()
    commands = going_on if waiting is None else waiting.commands  # empty once the wait has ended
    page = f"{dashboard}/ui/trees/{notification.root_job_id}" if dashboard and commands else ""
    lines = [
        one_line(notification.message),
        f"{task.repo}: {plain(task.title)}",
        *_questions(waiting),
        *_failures(failing),
    ]
    if waiting and waiting.end is None:
        lines.append(f"until {clock(waiting.expires_at)}")
    return replace(
        notification,
        repo=task.repo,
        title=task.title,
        text="\n".join([*lines, cost, *map(one_line, commands), *([f"or on the page {page}"] if page else [])]),
        questions=tuple(each.model_dump(mode="json") for each in waiting.questions) if waiting else (),
        failing=tuple(_fail(each) for each in failing)
        or tuple(each.model_dump(mode="json") for each in (waiting.failing if waiting else ())),
        commands=commands,
        page=page,
        expires_at=waiting.expires_at if waiting and waiting.end is None else None,
        jobs=used.jobs,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        elapsed_seconds=used.elapsed_seconds,
    )


def _round(store: Engine, notification: Notification) -> RoundRecord | None:
    """Return the coordinator's last round before the notification."""
    if not notification.kind.startswith("round_"):
        return None
    rounds = round_rows.of_tree(store, notification.root_job_id)
    mine = [each for each in rounds if each.coordinator_id == notification.job_id]
    before = [each for each in mine if each.opened_at <= notification.at]
    return (before or mine)[-1] if mine else None


def _questions(waiting: RoundRecord | None) -> Iterator[str]:
    for question in waiting.questions if waiting else ():
        choices = f" [{' | '.join(plain(each) for each in question.choices)}]" if question.choices else ""
        yield f"  {question.id}: {plain(question.prompt)[:TEXT_SHOWN]}{choices[:TEXT_SHOWN]}"
    for fail in waiting.failing if waiting else ():
        yield f"  {fail.leg} ({fail.job_id}) {fail.state}: {plain(fail.reason)[:TEXT_SHOWN]}"
    if waiting and waiting.end is not None:
        yield f"  this is over: {waiting.closed}"


def _failures(failing: list[JobRecord]) -> Iterator[str]:
    for job in failing:
        name = job.delegation_id or job.continuation
        yield f"  {name} ({job.job_id}) {job.state}: {plain(job.reason or job.summary)[:TEXT_SHOWN]}"


def _fail(job: JobRecord) -> dict[str, object]:
    """Describe a failed job in the form that rounds use."""
    leg = job.delegation_id or ""
    return {"leg": leg, "job_id": job.job_id, "attempt": job.attempt, "state": job.state.value, "reason": job.reason}
