"""Deferral of a run until its program can work again: Temporal waits, and the run holds no process or slot
meanwhile.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.agents.faults import Blocker, BlockerKind
from activities.host.context import Context
from activities.redaction.redact import redact_text
from activities.settings.model import RuntimeSection
from activities.stations.hook import reach
from activities.store import attempt_rows
from activities.store.attempt_rows import AttemptRow, Deferral
from workflows.contract.storable import storable
from workflows.model.jobs import JobRun
from workflows.model.spend import Usage
from workflows.model.states import Continuation
from workflows.temporal.calls import WAITS
from workflows.text.durations import clock, format_duration

MARGIN_SECONDS = 5.0
"""Seconds added to a time that the program names: its clock may differ from this host's."""

EARLY_SECONDS = 0.25

LOOK_AGAIN_SECONDS = 60.0
"""The longest time from one call to the next: the clock of the worker that asked for it may have been wrong."""

FINALIZE_SECONDS = 300.0
"""The longest wait of a finalize job: a tree that ends, perhaps by a kill, must not stay open for hours."""


def due(blocker: Blocker, section: RuntimeSection, before: Sequence[Deferral], now: float) -> float | str:
    """Return when to try again, or the reason for no retry."""
    number = sum(each.kind == blocker.kind for each in before)
    match blocker.kind:
        case BlockerKind.LOGIN | BlockerKind.PROGRAM:
            return "waiting does not help"
        case BlockerKind.KILLED if number:
            return "it was tried again once"
        case BlockerKind.RATE_LIMIT:
            key, retries, first = "rate_limit_retries", section.rate_limit_retries, section.rate_limit_backoff
        case BlockerKind.NETWORK | BlockerKind.KILLED:
            key, retries, first = "network_retries", section.network_retries, section.network_backoff
    if number >= retries:
        return f"tried {number + 1} times, as often as {key} = {retries} allows"
    if blocker.until is None:
        return now + min(first * 2.0**number, section.rate_limit_wait)
    if blocker.until - now > section.rate_limit_wait:
        longest = format_duration(section.rate_limit_wait)
        return f"it lasts until {clock(blocker.until)}, longer than rate_limit_wait = {longest} allows"
    return max(now, blocker.until) + MARGIN_SECONDS


def defer(context: Context, run: JobRun, blocker: Blocker, used: Usage) -> Deferral | Blocker:
    """Defer the run, and report why and until when. If waiting doesn't help, or no retries are left, return the blocker
    with that reason added to its message.
    """
    before, now = attempt_rows.deferrals_of_run(context.store, run.job_id, run.attempt), time.time()
    runtime = run.assignment.worker.runtime
    section = context.settings.runtime(runtime)
    if run.continuation is Continuation.FINALIZE:
        section = section.model_copy(update={"rate_limit_wait": min(section.rate_limit_wait, FINALIZE_SECONDS)})
    until = due(blocker, section, before, now)
    if isinstance(until, str):
        match blocker.kind:
            case BlockerKind.RATE_LIMIT | BlockerKind.NETWORK:
                why = f"{blocker.message} ({until}, in [runtimes.{runtime}])"
            case BlockerKind.KILLED:
                why = f"{blocker.message} ({until})"
            case BlockerKind.LOGIN | BlockerKind.PROGRAM:
                why = blocker.message
        return Blocker(blocker.kind, why, blocker.until, blocker.hint)
    deferral = Deferral(
        job_id=run.job_id,
        attempt=run.attempt,
        number=len(before) + 1,
        runtime=runtime,
        kind=blocker.kind,
        message=storable(redact_text(blocker.message)),
        at=now,
        until=until,
        **used.model_dump(),
    )
    attempt_rows.defer(context.store, deferral)
    reach("run put off", run.job_id)
    # Ruling B3: show the reason for the wait, its end, and the command that ends it.
    goes_on = f"it goes on by itself; to end the task: service job kill {run.root_job_id} --now"
    context.reports.held_up(run, _words(deferral), goes_on)
    return deferral


def _words(deferral: Deferral) -> str:
    return f"waits for {deferral.runtime} until {clock(deferral.until)}: {deferral.message}"


def begin(context: Context, run: JobRun, row: AttemptRow) -> tuple[Deferral, ...]:
    """Return the deferred tries of an attempt, and report that a later one begins; raise while it is not due."""
    if row.worktree is None:  # it has had no try yet
        return ()
    before = attempt_rows.deferrals_of_run(context.store, run.job_id, run.attempt)
    if not before:
        return ()
    if before[-1].until - time.time() > EARLY_SECONDS:
        raise error(before[-1])
    reason = f"try {len(before) + 1}, after waiting for {before[-1].runtime}"
    context.reports.held_up(run, reason, "")
    return before


def error(deferral: Deferral) -> ApplicationError:
    """Return the error that frees the activity's slot and makes Temporal call it again after the wait. Its category is
    benign, so it isn't logged as a failure.
    """
    return ApplicationError(
        _words(deferral),
        type=WAITS,
        next_retry_delay=timedelta(seconds=min(max(0.0, deferral.until - time.time()), LOOK_AGAIN_SECONDS)),
        category=ApplicationErrorCategory.BENIGN,
    )


def try_dir(row: AttemptRow, before: Sequence[Deferral]) -> Path:
    """Return the try's own folder, so that outputs of different tries are never mixed up."""
    first = Path(row.run_dir)
    return first.with_name(f"{first.name}.try{len(before) + 1}") if before else first


def earlier_dirs(row: AttemptRow, before: Sequence[Deferral]) -> tuple[Path, ...]:
    """Return the folders of the deferred tries, oldest first."""
    return tuple(try_dir(row, before[:number]) for number in range(len(before)))
