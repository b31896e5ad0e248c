"""Notices of an attempt beside its outcome: restarted programs, lost sessions, work that was left out."""

from collections.abc import Sequence
from pathlib import Path

from activities.jobs.deferral import earlier_dirs, try_dir
from activities.jobs.execution import AGAIN, AGAIN_REASON, FRESH, Executed
from activities.jobs.resumption import Resumption
from activities.jobs.workspace import Evidence
from activities.runs.supervised_run import Claim
from activities.store.attempts import AttemptRow, Deferral
from workflows.contract.models import Notice
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobRun

SHOWN, MOST = 5, 50
"""Maximum number of oddities in a sentence, and in an event."""


def of_attempt(run: JobRun, row: AttemptRow, before: Sequence[Deferral], goes_on: Resumption) -> tuple[Notice, ...]:
    """Return notices from the folders of all tries, whatever the attempt's outcome."""
    tries = (*earlier_dirs(row, before), try_dir(row, before))
    again = any(_started(each, AGAIN) for each in tries)
    lost = any(_started(each, FRESH) for each in tries)
    told = []
    if again:
        message = f"{run.job_id} was {AGAIN_REASON}"
        told.append(Notice(kind=EventKind.RUN_STARTED_AGAIN, message=message, data={"attempt": run.attempt}))
    why = goes_on.why_not
    if not why and lost:
        why = "its program has lost it"
    if not why and again and goes_on.folder is not None:
        why = "its run was started again"
    if why:
        message = f"{run.job_id} began a fresh session: {why}"
        told.append(
            Notice(kind=EventKind.SESSION_NOT_RESUMED, message=message, data={"session": goes_on.session, "why": why})
        )
    return tuple(told)


def of_evidence(run: JobRun, evidence: Evidence) -> tuple[Notice, ...]:
    """Return a notice of entries in the work folder that a commit can't contain."""
    if not evidence.odd:
        return ()
    shown = "; ".join(evidence.odd[:SHOWN]) + (
        f"; and {len(evidence.odd) - SHOWN} more" if evidence.odd[SHOWN:] else ""
    )
    message = f"{run.job_id} left in its work folder what is looked at no further: {shown}"
    return (Notice(kind=EventKind.WORK_LEFT_OUT, message=message, data={"found": list(evidence.odd[:MOST])}),)


def of_output(run: JobRun, executed: Executed | None) -> tuple[Notice, ...]:
    """Return a notice of output that was too long to be read."""
    if executed is None or not executed.left_out:
        return ()
    found = f"{executed.left_out} bytes in the middle of {executed.end.stdout}"
    message = f"{run.job_id} printed more than is read: {found} were left out"
    return (Notice(kind=EventKind.WORK_LEFT_OUT, message=message, data={"found": [found]}),)


def _started(run_dir: Path, suffix: str) -> bool:
    """Return whether a run's claim has a process; a folder may be claimed only so that nothing starts there."""
    claim = Claim.read(run_dir.with_name(run_dir.name + suffix))
    return claim is not None and claim.pid is not None
