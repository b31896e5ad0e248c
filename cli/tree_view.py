"""A tree on a terminal, once or live."""

import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.output import redraw, say, say_json_line
from cli.words import one_line
from workflows.contract import visible

if TYPE_CHECKING:
    from bridge.operations.jobs import Tree
    from bridge.operations.service import Service

INTERVAL = 0.3
WIDTH = 100


def lines(tree: "Tree") -> Iterator[str]:
    """The whole view, top down."""
    from workflows.tree.details import nested, spend

    task = tree.task
    yield f"{task.task_id}  {task.state}  {one_line(task.title, WIDTH)}"
    if tree.belongs_to.what:
        yield f"  belongs to {tree.belongs_to}"
    if task.why:
        yield f"  because: {one_line(task.why, 2 * WIDTH)}"
    yield f"  {spend(tree.bounds, tree.ledger)}"
    if task.next:
        yield f"  next: {task.next}"
    waits = {job.reason: job.next for job in tree.jobs if job.next and job.ended_at is None}
    yield from (f"  waits: {why}; {what_next}" for why, what_next in waits.items())
    yield ""
    yield from nested(tree.jobs)


def watch_tree(service: "Service", job_id: str, *, json: bool = False) -> None:
    """Show every change until the tree is over: in place on a terminal, one view after another elsewhere.

    As JSON it is a document on a line of its own for each change.
    """
    from bridge.operations import jobs

    in_place = sys.stdout.isatty()
    shown: list[str] = []
    while True:
        tree = jobs.tree(service, job_id)
        view = [visible.one_line(line) for line in lines(tree)]
        if json:
            if _without_clock(view) != _without_clock(shown):
                say_json_line(jobs.tree_as_json(tree))
        elif in_place:
            width = shutil.get_terminal_size().columns
            redraw([line[:width] for line in view], len(shown))
        elif _without_clock(view) != _without_clock(shown):
            say(*view, "")
        sys.stdout.flush()
        if tree.over:
            return
        shown = view
        time.sleep(INTERVAL)


def _without_clock(view: list[str]) -> list[str]:
    return [line for line in view if not line.startswith("  jobs ")]
