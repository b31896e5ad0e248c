"""The session that a coordinator's continuation resumes (ruling K3): that of the last job in its chain."""

from dataclasses import dataclass
from pathlib import Path

from activities.host.context import Context
from activities.store import attempt_rows
from activities.store.attempt_rows import AttemptRow
from workflows.model.jobs import JobRun
from workflows.model.states import Continuation
from workflows.model.workers import SessionScope


@dataclass(frozen=True)
class EarlierSession:
    """The session to resume and its folder; or, if none can be resumed, the reason."""

    session: str | None = None
    folder: Path | None = None
    why_not: str = ""


def earlier_session(context: Context, run: JobRun, row: AttemptRow) -> EarlierSession:
    """Return the session to resume, with the folder by which programs know it. Idempotent: a repeated call for a run
    returns the same session.
    """
    if (
        run.assignment.worker.session is not SessionScope.TREE
        or run.continuation is Continuation.NONE
        or not run.parent_job_id
    ):
        return EarlierSession()
    if run.attempt > 1:
        return EarlierSession(why_not="another attempt of a job begins afresh")
    before = attempt_rows.of_job(context.store, run.parent_job_id)[-1:]
    session = before[0].known_outcome.session if before and before[0].known_outcome else None
    if not session or before[0].worktree is None:
        return EarlierSession(why_not=f"{run.parent_job_id} left no session")
    if before[0].host != context.host:
        return EarlierSession(session, why_not=f"it is on the host {before[0].host}")
    folder = context.home.worktrees / Path(before[0].worktree).name
    if f"+{run.root_job_id}-shared+" in folder.name:
        return EarlierSession(session, why_not="it worked in a worktree that legs share")
    taken = folder.exists() if row.worktree is None else Path(row.worktree).name != folder.name
    if taken:
        return EarlierSession(session, why_not="the folder it worked in was not free")
    return EarlierSession(session, folder)
