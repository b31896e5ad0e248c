"""A tree on a terminal, once or live."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import ScreenLine, prose, state_line, tree_line, with_head
from cli.drawing.output import quote_name
from cli.drawing.words import clock, one_line

if TYPE_CHECKING:
    from bridge.operations.jobs.jobs import Tree
    from cli.drawing.live import LiveView
    from cli.drawing.viewport import ViewRow
    from workflows.model.rows import JobRecord

NAMED = 3
WIDTH = 100
_RANKS = {"running": 0, "blocked": 1, "failed": 2, "queued": 4}
"""Priority on a screen that is too short; queued jobs that need a person rank higher, see `_WAITS`."""
_WAITS, _OVER = 3, 5


def lines(tree: "Tree") -> Iterator[str]:
    """Yield the whole view, top down."""
    yield _title(tree)
    yield from with_head("  final summary:", tree.final_summary) if tree.final_summary else ()
    yield from (*_why(tree), _times(tree), _spend_line(tree), *_what_next(tree), "")
    yield from (line for line, _ in _job_lines(tree))


def _title(tree: "Tree") -> str:
    state = tree.state.words
    return state_line(f"{tree.task.task_id}  {state}  {one_line(tree.task.title, WIDTH)}", state)


def _times(tree: "Tree") -> str:
    from workflows.text.durations import format_duration

    task, now = tree.task, time.time()
    took = f"{'took' if task.ended_at else 'for'} {format_duration(int(task.elapsed_seconds(now)))}"
    waited = int(task.paused_seconds + (now - task.paused_since if task.paused_since else 0))
    waits = f", and waited {format_duration(waited)} for people" if waited else ""
    return prose(f"  started {clock(task.opened_at)}, {took}{waits}")


def _why(tree: "Tree") -> Iterator[str]:
    if tree.belongs_to.what:
        yield prose(f"  belongs to {tree.belongs_to}")
    if tree.task.why:
        yield prose(f"  because: {one_line(tree.task.why, 2 * WIDTH)}")


def _spend_line(tree: "Tree") -> str:
    from workflows.tree.details import spend

    return prose(f"  {spend(tree.bounds, tree.spent)}")


def _what_next(tree: "Tree") -> Iterator[str]:
    task = tree.task
    for waiting in tree.rounds:
        if waiting.end is None:
            yield from (prose(f"  asks you: {one_line(each.prompt, 2 * WIDTH)}") for each in waiting.questions)
    if task.next:
        yield f"  next: {task.next}"
    waits = {job.reason: job.next for job in tree.jobs if job.next and job.ended_at is None}
    yield from (f"  waits: {why}; {what_next}" for why, what_next in waits.items())


def view(tree: "Tree") -> "LiveView":
    """Build the view: title and spend are always shown, the rest as far as there is room."""
    from cli.drawing.live import LiveView

    return LiveView(
        [_title(tree), _spend_line(tree), *_why(tree), *_what_next(tree)], list(_rows(tree)), list(lines(tree))
    )


def _rows(tree: "Tree") -> "Iterator[ViewRow]":
    from cli.drawing.viewport import ViewRow

    places: dict[str, int] = {}
    for place, (line, job) in enumerate(_job_lines(tree)):
        places[job.job_id] = place
        above = places.get(job.parent_job_id) if job.parent_job_id else None
        yield ViewRow(line, _rank(job), str(job.state), above)


def _job_lines(tree: "Tree") -> "Iterator[tuple[ScreenLine, JobRecord]]":
    """Yield a line per job, below the one that delegated or continued it, in order of dispatch."""
    from workflows.policy.decisions import state_label
    from workflows.tree.details import draw

    for stem, job in draw(tree.jobs):
        label = state_label(job, tree.rounds)
        yield tree_line(f"{stem}{_job(job, label, tree.hosts.get(job.job_id, ''))}", label), job


_MARKS = {"asks you": "⏸", "answered": "✔"}


def _job(job: "JobRecord", label: str, host: str) -> str:
    from workflows.policy.decisions import decision_label
    from workflows.policy.prices import dollars
    from workflows.tree.details import MARKS

    number = job.job_id.removeprefix(job.root_job_id) or job.job_id
    what = f"{job.name} {job.agent} {job.action}" if job.delegation_id else f"{job.agent} {job.action}"
    what = what if job.delegation_id or job.continuation == "none" else f"{job.agent} {job.name}"
    decision = f" {word}" if (word := decision_label(job.state, job.decision)) else ""
    parts = [
        f"{label}{decision}",
        *(["batch blocked"] if job.has_blocked_batch else []),
        *([f"attempt {job.attempt}"] if job.attempt > 1 else []),
        *([f"on {quote_name(host)}"] if host else []),
        *_durations(job),
    ]
    cost = dollars(job.cost_usd, assumed=job.price_assumed)
    spent = f" [{job.usage.total:,} tokens, {cost}]" if job.usage.total else ""
    head = f"{_MARKS.get(label, MARKS[job.state])} {number} {what}: {', '.join(parts)}"
    return f"{head}{spent}  {one_line(job.summary or job.reason, WIDTH)}".rstrip()


def _durations(job: "JobRecord") -> Iterator[str]:
    """Yield how long a job ran, and how long it waited for its start if that was a second or more."""
    from workflows.text.durations import format_duration

    began = job.started_at or job.ended_at or time.time()
    if (waited := int(began - job.queued_at)) > 0:
        yield f"{'waited' if job.started_at or job.ended_at else 'waits'} {format_duration(waited)}"
    if job.started_at:
        ran = format_duration(max(0, int((job.ended_at or time.time()) - job.started_at)))
        yield f"took {ran}" if job.ended_at else f"for {ran}"


def _rank(job: "JobRecord") -> tuple[float, ...]:
    """Return a job's rank in the view, the most important first; of ended jobs the latest comes first."""
    waits = job.state == "queued" and job.next
    return (_WAITS if waits else _RANKS.get(job.state, _OVER), -(job.ended_at or 0.0))


def goes_on(tree: "Tree") -> str:
    """Return one line with the running jobs and their times, the queue, and the cost."""
    from workflows.policy.prices import dollars
    from workflows.text.durations import format_duration

    if tree.over:
        return ""
    now, used = time.time(), tree.spent
    running = [job for job in tree.jobs if job.state == "running"]
    queued = sum(job.state == "queued" for job in tree.jobs)
    names = [f"{job.name} {format_duration(int(now - (job.started_at or now)))}" for job in running]
    parts = [f"running {', '.join(names[:NAMED])}" if names else ""]
    parts += [f"and {len(names) - NAMED} more" if len(names) > NAMED else "", f"{queued} queued" if queued else ""]
    if tree.task.state == "awaiting_human":
        parts = ["needs you"]
    spent = f"{used.tokens:,} tokens, {dollars(used.cost_usd, assumed=used.price_assumed)}"
    doing = ", ".join(part for part in parts if part) or str(tree.task.state)
    return f"{doing}; {spent}, {format_duration(int(used.elapsed_seconds))}"
