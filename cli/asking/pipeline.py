"""Following a pipeline run to its end: line by line, or in a live view."""

import sys
import time
from typing import TYPE_CHECKING

from cli.asking.questions import Asker
from cli.drawing.output import say, say_json, tell
from cli.drawing.pipeline import goes_on, lines, stage_line, view
from cli.invocation.faults import left_alone

if TYPE_CHECKING:
    from bridge.machine.step_messages import Step
    from bridge.operations.pipelines.runs import RunView
    from bridge.operations.service import Service

INTERVAL = 0.2


def watch(service: "Service", run_id: str, *, json: bool) -> int:
    """Show the run in a live view on a terminal; elsewhere do as `follow` does."""
    from cli.drawing.screens import can_move

    if json or not can_move(sys.stdout) or not can_move(sys.stderr):
        return follow(service, run_id, json=json)
    with left_alone(f"service pipeline watch {run_id}", "service attention"):
        return _code(_watch_live(service, run_id))


def follow(service: "Service", run_id: str, *, json: bool) -> int:
    """Print each change of the run once, then its outcome. Return 0 if the run succeeded, 1 if it ended otherwise."""
    from cli.drawing.progress import progress

    with left_alone(f"service pipeline watch {run_id}", "service attention"), progress(timed=False) as step:
        run = _until_over(service, run_id, Asker(service, json=json), step)
    say_json(run) if json else say(*lines(run))
    return _code(run)


def _code(run: "RunView") -> int:
    return 0 if run.state == "succeeded" else 1


def _watch_live(service: "Service", run_id: str) -> "RunView":
    from bridge.operations.pipelines import runs
    from cli.drawing.live import live

    asker = Asker(service, json=False)
    with live() as shown:
        while (run := runs.show_run(service, run_id)).finished_at is None:
            shown.show(view(run))
            for job_id in _asking(run):
                if asker.has_news(job_id):
                    with shown.aside():
                        asker.look(job_id)
            time.sleep(INTERVAL)
        shown.view = view(run)
    return run


def _asking(run: "RunView") -> list[str]:
    """Return the root jobs of the run's stages if the run waits for a person, else an empty list."""
    return [stage.job_id for stage in run.stages if stage.job_id] if run.state == "awaiting_human" else []


def _until_over(service: "Service", run_id: str, asker: Asker, step: "Step") -> "RunView":
    from bridge.operations.pipelines import runs

    printed: dict[str, tuple[str, int]] = {}
    state = ""
    while True:
        run = runs.show_run(service, run_id)
        step(goes_on(run))
        for stage in run.stages:
            if printed.get(stage.id) != (stage.state, stage.attempt) and stage.state != "pending":
                printed[stage.id] = (stage.state, stage.attempt)
                tell(stage_line(stage))
        if run.state == "awaiting_human" != state:
            tell(f"waits: {run.reason}")
        state = run.state
        for job_id in _asking(run):
            asker.look(job_id)
        if run.finished_at is not None:
            return run
        time.sleep(INTERVAL)
