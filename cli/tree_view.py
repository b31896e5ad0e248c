"""A tree on a terminal, once or live."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import prose
from cli.drawing.trees import state_line, tree_line
from cli.output import say, say_json_line
from cli.waiting import left_alone
from cli.words import one_line

if TYPE_CHECKING:
    from bridge.operations.jobs.jobs import Tree
    from bridge.operations.service import Service
    from cli.drawing.viewport import Row
    from cli.live import View
    from workflows.model.rows import JobRecord

INTERVAL = 0.3
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


def watch_tree(service: "Service", job_id: str, *, json: bool = False) -> None:
    """Show every change until the tree is over: in place on a terminal, one view after another elsewhere.

    As JSON, print a document on one line for each change.
    """
    from cli.drawing.screens import can_move

    if not json and can_move(sys.stdout):
        with left_alone(f"service job tree {job_id} --watch"):
            _watch_live(service, job_id)
    else:
        _print_changes(service, job_id, json=json)


def _watch_live(service: "Service", job_id: str) -> None:
    from bridge.operations.jobs import jobs
    from cli.live import live

    with live() as shown:
        while not (tree := jobs.tree(service, job_id)).over:
            shown.show(_view(tree))
            shown.pause(INTERVAL)
        shown.last(_view(tree))


def _print_changes(service: "Service", job_id: str, *, json: bool) -> None:
    from bridge.operations.jobs import jobs

    shown: list[str] = []
    while True:
        tree = jobs.tree(service, job_id)
        view = list(lines(tree))
        if _without_clock(view) != _without_clock(shown):
            if json:
                from bridge.operations.jobs.views import WholeTree

                say_json_line(WholeTree.of(tree))
            else:
                say(*view, "")
        sys.stdout.flush()
        if tree.over:
            return
        shown = view
        time.sleep(INTERVAL)


def _without_clock(view: list[str]) -> list[str]:
    return [line for line in view if not line.startswith("  jobs ")]


def _view(tree: "Tree") -> "View":
    """Build the view: title and spend are always shown, the rest as far as there is room."""
    from cli.live import View

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
    """Rank a job; among ended ones the latest comes first."""
    waits = job.state == "queued" and job.next
    return (_WAITS if waits else _RANKS.get(job.state, _OVER), -(job.ended_at or 0.0))
