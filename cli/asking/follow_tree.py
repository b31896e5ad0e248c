"""Following a tree to its end: `--wait`, `--follow` and `--watch`."""

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from cli.asking.questions import Asker
from cli.drawing.output import say, say_json, say_json_line, say_next, tell
from cli.drawing.tree import goes_on, lines, view
from cli.drawing.words import clock, event_in_words, in_words
from cli.invocation.faults import left_alone

if TYPE_CHECKING:
    from bridge.operations.jobs.jobs import Tree
    from bridge.operations.service import Service
    from workflows.model.rows import EventRecord

INTERVAL = 0.2
LINE_INTERVAL = 2.0
_REDRAW = 0.3


def follow(service: "Service", job_id: str, *, json: bool, ends: bool = True) -> int:
    """Print each change of the tree once, then its outcome. If this is the last output of the command (`ends`), also
    print the commands to type next.

    Return 0 if the tree is done, 1 if it ended otherwise or was cut short.
    """
    from bridge.operations.jobs import jobs, views
    from cli.drawing.progress import progress

    printed: dict[str, str] = {}
    asker = Asker(service, json=json)
    back = left_alone(f"service job tree {job_id} --watch", f"service resume {job_id}")
    with back, progress(timed=False) as step:
        for tree, events in _watch(service, job_id):
            step(goes_on(tree))
            for event in events:
                tell(event_in_words(event))
            for job in tree.jobs if not json else ():
                why = f": {job.reason}" if job.reason and job.ended_at is None else ""
                has_event = job_id in (job.root_job_id, job.job_id)
                is_news = printed.get(job.job_id) != f"{job.state}{why}"
                printed[job.job_id] = f"{job.state}{why}"
                if is_news and (not has_event or (why and not any(why in event.message for event in events))):
                    tell(f"{job.job_id} {job.name} {job.state}{why}")
            if tree.task.state == "awaiting_human":
                asker.look(tree.task.root_job_id)
    last = tree.jobs[-1].job_id if tree.jobs[-1].continuation != "none" else job_id
    detail = jobs.detail(service, last)
    if json:
        say_json(views.detail(detail))
    else:
        say(*in_words(detail, service.settings.program_name(detail.job.runtime)))
    if ends and not json:
        say_what_is_next(service, job_id)
    return 0 if tree.state == "done" else 1


def silently(service: "Service", job_id: str) -> "Tree":
    """Wait without output or questions until the tree is over or needs a person; return it."""
    with left_alone(f"service job tree {job_id} --watch"):
        for tree, _ in _watch(service, job_id):
            if tree.over or tree.task.state == "awaiting_human":
                return tree
    raise AssertionError("a task is watched until it is over")


def follow_events(service: "Service", job_id: str, *, json: bool) -> None:
    """Print each event of a job as it is recorded, one per line, until the tree is over."""
    from cli.drawing.progress import progress

    last_lines = LastLines(service, job_id)
    back = left_alone(f"service job events {job_id} --follow") if sys.stdout.isatty() else nullcontext()
    with back, progress(timed=False) as step:
        for tree, events in _watch(service, job_id):
            step(goes_on(tree))
            for event in events:
                say_json_line(event) if json else say(event_in_words(event))
            if not json:
                last_lines.say_what_is_new(tree)
            sys.stdout.flush()


class LastLines:
    """Prints agents' output between the events, rate-limited: each job's last line if it has changed."""

    def __init__(self, service: "Service", job_id: str) -> None:
        self._service = service
        self._job_id = job_id
        self._said: dict[str, tuple[float, str]] = {}

    def say_what_is_new(self, tree: "Tree") -> None:
        """Print the last lines that have changed, at most one per job in `LINE_INTERVAL` seconds."""
        from bridge.operations.jobs import jobs

        for job in tree.jobs:
            looked, before = self._said.get(job.job_id, (-LINE_INTERVAL, ""))
            if self._job_id not in (job.job_id, job.root_job_id) or time.monotonic() < looked + LINE_INTERVAL:
                continue
            live = jobs.live(self._service, job)
            line = live.last_line if live else ""
            self._said[job.job_id] = (time.monotonic(), line or before)
            if line not in ("", before):
                say(f"{clock(time.time())}  {job.job_id}  prints: {line}")


def _watch(service: "Service", job_id: str) -> "Iterator[tuple[Tree, list[EventRecord]]]":
    """Poll the tree, and yield it with its new events, until it is over."""
    from bridge.operations.jobs import jobs

    after = 0
    waited = 0
    while True:
        tree = jobs.tree(service, job_id)
        events = jobs.events(service, job_id, after=after)
        after = max([after, *(event.seq for event in events)])
        waits = jobs.waits(service, job_id)
        events += waits[waited:]
        waited = len(waits)
        yield tree, events
        if tree.over:
            return
        time.sleep(INTERVAL)


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
    if not json:
        say_what_is_next(service, job_id)


def say_what_is_next(service: "Service", job_id: str) -> None:
    """Print the commands that fit the tree's end."""
    from bridge.operations.branches import merge_offer
    from bridge.operations.jobs import jobs

    say_next(*merge_offer.next_commands(service, jobs.tree(service, job_id)))


def follow_commands(job_id: str) -> tuple[str, str]:
    """Return the commands with which a person follows a running tree."""
    return f"service job tree {job_id} --watch", "service attention"


def _watch_live(service: "Service", job_id: str) -> None:
    from bridge.operations.jobs import jobs
    from cli.drawing.live import live

    with live() as shown:
        while not (tree := jobs.tree(service, job_id)).over:
            shown.show(view(tree))
            time.sleep(_REDRAW)
        shown.view = view(tree)


def _print_changes(service: "Service", job_id: str, *, json: bool) -> None:
    from bridge.operations.jobs import jobs

    shown: list[dict[str, object]] = []
    while True:
        tree = jobs.tree(service, job_id)
        content = [row.model_dump(exclude={"revision"}) for row in (tree.task, *tree.jobs)]
        if content != shown:
            if json:
                from bridge.operations.jobs.views import WholeTree

                say_json_line(WholeTree.of(tree))
            else:
                say(*lines(tree), "")
        sys.stdout.flush()
        if tree.over:
            return
        shown = content
        time.sleep(_REDRAW)
