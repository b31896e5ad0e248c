"""A tree on a terminal, once or live."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import prose, state_line, tree_line
from cli.drawing.words import one_line

if TYPE_CHECKING:
    from bridge.operations.jobs.jobs import Tree
    from cli.drawing.live import View
    from cli.drawing.viewport import Row
    from workflows.model.rows import JobRecord

NAMED = 3
WIDTH = 100
_RANKS = {"running": 0, "blocked": 1, "failed": 2, "queued": 4}
"""Priority on a screen that is too short; queued jobs that need a person's action rank higher, see `_WAITS`."""
_WAITS, _OVER = 3, 5


def lines(tree: "Tree") -> Iterator[str]:
    """Yield the whole view, top down."""
    from workflows.tree.details import nested

    yield from (_title(tree), *_why(tree), _spent(tree), *_what_next(tree), "", *map(tree_line, nested(tree.jobs)))


def _title(tree: "Tree") -> str:
    task = tree.task
    return state_line(f"{task.task_id}  {task.state}  {one_line(task.title, WIDTH)}", task.state)


def _why(tree: "Tree") -> Iterator[str]:
    if tree.belongs_to.what:
        yield prose(f"  belongs to {tree.belongs_to}")
    if tree.task.why:
        yield prose(f"  because: {one_line(tree.task.why, 2 * WIDTH)}")


def _spent(tree: "Tree") -> str:
    from workflows.tree.details import spend

    return prose(f"  {spend(tree.bounds, tree.spent)}")


def _what_next(tree: "Tree") -> Iterator[str]:
    task = tree.task
    if task.next:
        yield f"  next: {task.next}"
    waits = {job.reason: job.next for job in tree.jobs if job.next and job.ended_at is None}
    yield from (f"  waits: {why}; {what_next}" for why, what_next in waits.items())


def view(tree: "Tree") -> "View":
    """Build the view: title and spend are always shown, the rest as far as there is room."""
    from cli.drawing.live import View

    return View([_title(tree), _spent(tree), *_why(tree), *_what_next(tree)], list(_rows(tree)), list(lines(tree)))


def _rows(tree: "Tree") -> "Iterator[Row]":
    from cli.drawing.viewport import Row
    from workflows.tree.details import drawn

    places: dict[str, int] = {}
    for place, (line, job) in enumerate(drawn(tree.jobs)):
        places[job.job_id] = place
        above = places.get(job.parent_job_id) if job.parent_job_id else None
        yield Row(tree_line(line), _rank(job), str(job.state), above)


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
    names = [f"{_name(job)} {format_duration(int(now - (job.started_at or now)))}" for job in running]
    parts = [f"running {', '.join(names[:NAMED])}" if names else ""]
    parts += [f"and {len(names) - NAMED} more" if len(names) > NAMED else "", f"{queued} queued" if queued else ""]
    if tree.task.state == "awaiting_human":
        parts = ["waits for a person"]
    spent = f"{used.tokens:,} tokens, {dollars(used.cost_usd, assumed=used.price_assumed)}"
    doing = ", ".join(part for part in parts if part) or str(tree.task.state)
    return f"{doing}; {spent}, {format_duration(int(used.elapsed_seconds))}"


def _name(job: "JobRecord") -> str:
    return job.delegation_id or ("root" if job.continuation == "none" else f"({job.continuation})")
