"""What the agent of a job prints, or printed: as long as its files are kept, and on the host where it ran."""

from dataclasses import dataclass
from pathlib import Path

from activities.runs.output import last_lines
from activities.runs.regular_files import size_of
from activities.runs.status import newest_program
from activities.store import attempts as stored_runs
from bridge.operations import jobs
from bridge.operations.service import Service


@dataclass(frozen=True)
class Output:
    """The end of what its newest program printed, without secrets (ruling A12)."""

    text: str = ""
    size: int = 0
    """Of the whole, in bytes."""
    file: str = ""
    """Where the whole stands."""
    problem: str = ""
    """Why there is nothing to show."""


def of_job(service: Service, job_id: str, limit: int) -> Output:
    """At most so many letters of it."""
    job = jobs.get(service, job_id)
    runs = stored_runs.of_job(service.store, job.job_id)
    if not runs:
        return Output(problem="it has not begun yet" if job.ended_at is None else "it never ran")
    if runs[-1].host != service.settings.host:
        return Output(problem=f"it is on the host {runs[-1].host}, not here")
    program = newest_program(Path(runs[-1].run_dir))
    file = (program or Path(runs[-1].run_dir)) / "stdout.log"
    try:
        file.lstat()
    except FileNotFoundError:
        return Output(problem="nothing yet" if job.ended_at is None else "it is not kept any more")
    return Output(last_lines(file, limit), size_of(file), str(file))
