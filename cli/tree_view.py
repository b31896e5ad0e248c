"""A tree on a terminal: nested jobs, and what is spent of every bound."""

import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.output import say
from cli.words import one_line

if TYPE_CHECKING:
    from bridge.operations.jobs import Tree
    from bridge.operations.service import Service
    from workflows.tree.records import JobRecord

INTERVAL = 0.3
WIDTH = 100
MARKS = {
    "queued": "·",
    "running": "▶",
    "succeeded": "✔",
    "failed": "✘",
    "blocked": "■",
    "cancelled": "○",
    "skipped": "-",
}
UP = "\x1b[{}A\x1b[J"
"""Back to the first line of the view, and clear from there."""


def lines(tree: "Tree") -> Iterator[str]:
    """The whole view, top down."""
    task = tree.task
    yield f"{task.task_id}  {task.state}  {one_line(task.title, WIDTH)}"
    if task.reason and task.state != "open":
        yield f"  {one_line(task.reason, 2 * WIDTH)}"
    yield f"  {_spend(tree)}"
    if task.next:
        yield f"  next: {task.next}"
    yield ""
    yield from _nested(tree)


def watch_tree(service: "Service", job_id: str) -> None:
    """Show every change until the tree is over: in place on a terminal, one view after another elsewhere."""
    from bridge.operations import jobs

    in_place = sys.stdout.isatty()
    shown: list[str] = []
    while True:
        tree = jobs.tree(service, job_id)
        view = list(lines(tree))
        if in_place:
            width = shutil.get_terminal_size().columns
            say(f"{UP.format(len(shown)) if shown else ''}" + "\n".join(line[:width] for line in view))
        elif _without_clock(view) != _without_clock(shown):
            say("\n".join([*view, ""]))
        sys.stdout.flush()
        if tree.over:
            return
        shown = view
        time.sleep(INTERVAL)


def _without_clock(view: list[str]) -> list[str]:
    return [line for line in view if not line.startswith("  jobs ")]


def _spend(tree: "Tree") -> str:
    """What is used of each bound, as far as the rows tell: paused time is not in them."""
    from workflows.contract.durations import format_duration

    bounds, jobs = tree.bounds, tree.jobs
    attempts = sum(job.attempt for job in jobs) - 1
    until = tree.task.ended_at or time.time()
    tokens = sum(job.usage.total for job in jobs)
    cost = sum(job.cost_usd for job in jobs)
    depth = max((job.delegation_depth for job in jobs), default=0)
    clock = f"{format_duration(int(until - tree.task.opened_at))} of "
    clock += format_duration(bounds.max_delegation_wall_clock_seconds)
    of_tokens = f" of {bounds.max_delegation_token_budget:,}" if bounds.max_delegation_token_budget else ""
    of_cost = f" of ${bounds.max_delegation_cost_usd:.2f}" if bounds.max_delegation_cost_usd else ""
    return (
        f"jobs {attempts} of {bounds.max_delegation_total_jobs}, depth {depth} of {bounds.max_delegation_depth}, "
        f"time {clock}, tokens {tokens:,}{of_tokens}, cost ${cost:.2f}{of_cost}"
    )


def _nested(tree: "Tree") -> Iterator[str]:
    children: dict[str | None, list[JobRecord]] = {}
    for job in tree.jobs:
        children.setdefault(job.parent_job_id, []).append(job)
    waiting = [("", "", job) for job in reversed(children.get(None, []))]
    while waiting:
        stem, branch, job = waiting.pop()
        yield f"{stem}{branch}{_line(job)}"
        below = children.get(job.job_id, [])
        inner = stem + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        waiting += [(inner, "└─ " if child is below[-1] else "├─ ", child) for child in reversed(below)]


def _line(job: "JobRecord") -> str:
    name = job.delegation_id or ("root" if job.continuation == "none" else f"({job.continuation})")
    number = job.job_id.removeprefix(job.root_job_id) or job.job_id
    said = one_line(job.summary or job.reason, WIDTH)
    attempt = f" attempt {job.attempt}" if job.attempt > 1 else ""
    decided = f" {job.decision}" if job.decision else ""
    spent = f" [{job.usage.total:,} tokens, ${job.cost_usd:.2f}]" if job.usage.total else ""
    head = f"{MARKS[job.state]} {number} {name} {job.agent} {job.action}: {job.state}"
    return f"{head}{attempt}{decided}{spent}  {said}".rstrip()
