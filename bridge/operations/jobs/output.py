"""The prompt and the output of a job's program, as long as its files are kept, and only on the host where it ran."""

from dataclasses import dataclass
from pathlib import Path

from activities.redaction.redact import redacted
from activities.runs.output import last_lines
from activities.runs.regular_files import NotRegularError, content_of, size_of
from activities.runs.status import newest_program
from activities.store import attempts as stored_runs
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError


@dataclass(frozen=True)
class Output:
    """The end of the newest attempt's output, without secrets (ruling A12)."""

    text: str = ""
    size: int = 0
    """The size of the whole output in bytes."""
    file: str = ""
    """The path of the whole output."""
    problem: str = ""
    """Why there is nothing to show."""


def of_job(service: Service, job_id: str, limit: int) -> Output:
    """Return at most `limit` characters of the output."""
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


PROMPT_FILES = ("prompt", "prompt.md")
"""The files of a prompt: for standard input, and for a program that reads a file."""
MOST_OF_A_PROMPT = 16 * 1024 * 1024


@dataclass(frozen=True)
class Told:
    """The prompt of one attempt, without secrets."""

    job_id: str
    attempt: int
    prompt: str


def prompt(service: Service, job_id: str, attempt: int | None = None, most: int = MOST_OF_A_PROMPT) -> Told:
    """Return the prompt of an attempt, or of the last one; raise `NotFoundError` if no prompt is kept."""
    job = jobs.get(service, job_id)
    runs = {run.attempt: run for run in stored_runs.of_job(service.store, job.job_id)}
    look = f"service job show {job.job_id}"
    if not runs:
        raise NotFoundError(
            f"{job.job_id} has not begun yet" if job.ended_at is None else f"{job.job_id} never ran", look
        )
    run = runs.get(max(runs) if attempt is None else attempt)
    if run is None:
        raise NotFoundError(f"{job.job_id} has no attempt {attempt}; its attempts: {', '.join(map(str, runs))}", look)
    if run.host != service.settings.host:
        raise RefusedError(
            f"attempt {run.attempt} ran on the host {run.host}", f"on {run.host}: service job prompt {job.job_id}"
        )
    for file in PROMPT_FILES:
        try:
            text = content_of(Path(run.run_dir) / file, most).decode(errors="replace")
        except FileNotFoundError:
            continue
        except NotRegularError as error:
            raise RefusedError(str(error), look) from None
        return Told(job.job_id, run.attempt, redacted(text))
    raise NotFoundError(f"the prompt of attempt {run.attempt} is not kept any more ([worker].keep_runs)", look)
