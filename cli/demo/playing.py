"""Running the demo to its end, and cleaning up however it ends; with `--keep`, the service is left running."""

import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from cli.demo import story
from cli.demo.stage import DemoStage, make_stage
from cli.demo.story import DemoResult
from cli.drawing.output import say_json, tell, tell_error, tell_fault
from cli.invocation.exit_codes import INTERRUPTED
from workflows.model.errors import ServiceError

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def play(home: Path | None, *, keep: bool, json: bool) -> int:
    """Run all steps of the demo, and return the exit code."""
    began, result, code = time.monotonic(), DemoResult(), 0
    with _end_alike():
        stage = make_stage(home, silent=json)
        try:
            story.tell(stage, result)
        except ServiceError as error:
            code = _print_failure(stage, error)
        except KeyboardInterrupt:
            tell_fault("interrupted", "interrupted", [])
            code = INTERRUPTED
        finally:
            with _to_the_end():
                at_hand = _leave_running(stage, result) if keep else _clean_up(stage, result)
    if json and not code:
        taken = round(time.monotonic() - began, 1)
        done = {
            "state": "done",
            "job_id": result.job_id,
            "summary": result.summary,
            "jobs": result.jobs,
            "seconds": taken,
        }
        say_json(done | {"home": str(stage.home) if keep else None, "next": at_hand})
    return code


def _print_failure(stage: DemoStage, error: ServiceError) -> int:
    """Print the error and the ends of the logs, and return the exit code."""
    error.hint = error.hint or "see what the machine lacks: service doctor"
    if not stage.silent:
        tell("", *stage.ends_of_logs(), "")
    tell_error(error)
    return error.exit_code


def _leave_running(stage: DemoStage, result: DemoResult) -> list[str]:
    """Print and return the commands that show the kept demo, and the one that ends it."""
    look = [f"job tree {result.job_id}", f"job merge {result.job_id}"] if result.job_id else []
    looking = [stage.command_line(words) for words in (*look, "job list", "daemon status", "dashboard")]
    ending = f"{stage.command_line('daemon stop')} && rm -rf {shlex.quote(str(stage.home))}"
    stage.tell("", "It goes on running. Look around:", *(f"  {each}" for each in looking))
    try:
        state = stage.look("daemon", "status")["state"]
        stage.tell(f"  the web UI: {state['ui_url']}/namespaces/{state['namespace']}/workflows")
    except ServiceError:
        stage.tell("  the daemon does not run")
    stage.tell("Stop it and remove it:", f"  {ending}")
    return [*looking, ending]


def _clean_up(stage: DemoStage, result: DemoResult) -> list[str]:
    with stage.waiting("everything to stop"):
        stage.clear(result.job_id if not result.jobs else "")
    stage.tell("", "Stopped and removed. To keep it and look around: service demo --keep")
    return []


@contextmanager
def _end_alike() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that the clean-up runs."""
    before = {number: signal.signal(number, _interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


@contextmanager
def _to_the_end() -> Iterator[None]:
    """Ignore signals during the clean-up, also in the commands that the clean-up starts."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    yield


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
