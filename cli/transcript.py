"""`service job log`: the end of a job's transcript, all of it, or new entries as they come."""

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.output import flush, hand_over, say, say_json, say_json_line, tell
from cli.invocation.options import Json, service_here
from workflows.text.invisible import prefix_lines

if TYPE_CHECKING:
    from bridge.operations.jobs.output import Log
    from bridge.operations.service import Service

INTERVAL = 0.3


def log(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="A job id.")],
    attempt: Annotated[int | None, typer.Option(min=1, help="Number of the attempt; the last one by default.")] = None,
    tail: Annotated[int, typer.Option(min=1, max=1000, help="How many entries at the end.")] = 100,
    whole: Annotated[bool, typer.Option("--all", help="All entries, from the first one.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Show new entries until the job has ended.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the program's whole output as it is.")] = False,
    json: Json = False,
) -> None:
    """Show what a job's agent said and did: messages, tool calls, changed files. For people only."""
    from cli.drawing.entries import lines_of
    from cli.invocation.faults import left_alone
    from workflows.model.errors import UsageError

    if raw and json:
        raise UsageError("--raw and --json exclude each other", f"service job log {job_id} --raw")
    service = service_here()
    with left_alone(f"service job log {job_id} --follow") if follow and sys.stdout.isatty() else nullcontext():
        if raw:
            _print_raw(service, job_id, attempt, follow=follow)
        elif json and not (whole or follow):
            say_json(_end(service, job_id, attempt, tail))
        else:
            for part in _parts(service, job_id, attempt, None if whole else tail, follow=follow):
                for entry in part.entries:
                    say_json_line(entry) if json else say(*lines_of(entry))
                flush()


def _end(service: "Service", job_id: str, attempt: int | None, tail: int) -> "Log":
    """Return the last `tail` entries; a page of the transcript may have more than it was asked for."""
    from bridge.operations.jobs import output

    log = output.log(service, job_id, attempt, limit=tail)
    if len(log.entries) <= tail:
        return log
    entries = log.entries[-tail:]
    return log.model_copy(update={"entries": entries, "earlier_cursor": entries[0].at})


def _parts(service: "Service", job_id: str, attempt: int | None, tail: int | None, *, follow: bool) -> "Iterator[Log]":
    """Yield the transcript in parts. With `follow`, go on until the job has ended, including attempts that begin
    later.
    """
    from bridge.operations.jobs import output

    if tail is None:
        log = output.log(service, job_id, attempt, cursor=0)
    else:
        log = _end(service, job_id, attempt, tail)
        if log.earlier_cursor is not None:
            tell(f"earlier entries: service job log {job_id} --all")
    yield log
    if not log.size and not follow:
        tell(f"attempt {log.attempt} has printed nothing" if log.attempt else f"{job_id} has not begun yet")
    while follow or (tail is None and log.entries):
        before, cursor = log, log.next_cursor
        log = output.log(service, job_id, attempt or before.attempt or None, cursor=cursor)
        if log.next_cursor > cursor:
            yield log
        elif follow and attempt is None and log.attempts and log.attempts[-1] != log.attempt:
            tell(f"attempt {log.attempts[-1]}")
            log = output.log(service, job_id, log.attempts[-1], cursor=0)
            yield log
        elif not follow or (log.over and (attempt is not None or log.state.has_ended)):
            return
        else:
            time.sleep(INTERVAL)


def _print_raw(service: "Service", job_id: str, attempt: int | None, *, follow: bool) -> None:
    """Print the agent's raw output: unchanged to a program, as escaped lines to a person."""
    from bridge.operations.jobs import output

    at = 0
    while True:
        for piece, behind in output.raw(service, job_id, attempt, at):
            at = behind
            if sys.stdout.isatty():
                say(*prefix_lines(piece.decode("utf-8", "replace")))
            else:
                hand_over([piece])
        flush()
        log = output.log(service, job_id, attempt, cursor=at, limit=1)
        if not follow or (log.over and log.next_cursor == at):
            return
        time.sleep(INTERVAL)
