"""The prompt and the output of a job's program, while its files are kept. Files on another host are requested from its
bridge.

Secrets are redacted (ruling A12).
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from activities.agents import transcript
from activities.agents.entries import Entry
from activities.agents.registry import reader_of
from activities.agents.transcript import ProgramOutput
from activities.redaction.redact import redact_text
from activities.runs.regular_files import NotRegularError, content_of
from activities.store import attempt_rows, tree_rows
from activities.store.attempt_rows import AttemptRow
from bridge.operations.jobs import jobs
from bridge.operations.jobs.hosts import OtherHost
from bridge.operations.jobs.views import RowView
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError
from workflows.model.rows import JobRecord
from workflows.model.states import JobState

ENTRIES = 200
"""Entries of a page, unless the caller says otherwise."""

LONGEST = 4000
"""Characters of an entry's text, unless the caller says otherwise."""

PROMPT_FILES = ("prompt", "prompt.md")
"""The files of a prompt: for standard input, and for a program that reads a file."""
MOST_OF_A_PROMPT = 16 * 1024 * 1024
END = 2**62
"""An offset that is greater than the length of any output."""


class Log(RowView):
    """A part of an attempt's transcript: what its agent said and did."""

    job_id: str
    state: JobState
    attempt: int = Field(default=0, description="0 if the job has not begun yet.")
    attempts: list[int] = Field(default=[], description="All attempts of the job.")
    entries: list[Entry] = []
    size: int = Field(default=0, description="Bytes of the whole output.")
    earlier_cursor: int | None = Field(default=None, description="Pass it as `before` for the entries before these.")
    next_cursor: int = Field(default=0, description="Pass it as `cursor` for the entries that follow.")
    over: bool = Field(default=False, description="True if the attempt prints no more.")


@dataclass(frozen=True)
class AttemptPrompt:
    """The prompt of one attempt, without secrets."""

    job_id: str
    attempt: int
    prompt: str


def log(
    service: Service,
    job_id: str,
    attempt: int | None = None,
    *,
    before: int | None = None,
    cursor: int | None = None,
    limit: int = ENTRIES,
    longest: int = LONGEST,
) -> Log:
    """Return about `limit` entries of an attempt, by default the last ones of the last attempt.

    `before` returns those that end before an offset, `cursor` those that follow one; `before` takes precedence.
    """
    job, run, attempts = _attempt(service, job_id, attempt)
    if run is None:
        return Log(job_id=job.job_id, state=job.state)
    if there := _elsewhere(service, run, "log"):
        wanted = {"before": before, "cursor": cursor, "limit": limit, "longest": longest}
        return Log.model_validate_json(there.text(_path(run, "log"), **wanted))
    programs, read = _programs(job, run, attempts), reader_of(service.settings, job.runtime)
    try:
        if cursor is not None and before is None:
            page = transcript.after(programs, read, cursor, limit=limit, longest=longest)
        else:
            at = END if before is None else before
            page = transcript.before(programs, read, at, limit=limit, longest=longest)
    except NotRegularError as error:
        raise RefusedError(str(error), f"service job show {job.job_id}") from None
    return Log(
        job_id=job.job_id,
        state=job.state,
        attempt=run.attempt,
        attempts=attempts,
        entries=[_in_worktree(entry, run.worktree) for entry in page.entries],
        size=programs[-1].end,
        earlier_cursor=page.begin or None,
        next_cursor=page.end,
        over=programs[-1].closed,
    )


def raw(service: Service, job_id: str, attempt: int | None = None, cursor: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield an attempt's whole output in pieces, each with the offset of its end."""
    job, run, attempts = _attempt(service, job_id, attempt)
    if run is None:
        return
    if there := _elsewhere(service, run, "log --raw"):
        yield from there.raw(_path(run, "raw"), cursor)
        return
    try:
        yield from transcript.raw(_programs(job, run, attempts), cursor)
    except NotRegularError as error:
        raise RefusedError(str(error), f"service job show {job.job_id}") from None


def prompt(service: Service, job_id: str, attempt: int | None = None, most: int = MOST_OF_A_PROMPT) -> AttemptPrompt:
    """Return the prompt of an attempt, by default the last one. Below it follow the prompts of further programs, such
    as one that corrected the result. Raise `NotFoundError` if no prompt is kept.
    """
    job, run, _ = _attempt(service, job_id, attempt)
    look = f"service job show {job.job_id}"
    if run is None:
        raise NotFoundError(f"{job.job_id} has not begun yet", look)
    if there := _elsewhere(service, run, "prompt"):
        return AttemptPrompt(job.job_id, run.attempt, there.text(_path(run, "prompt"), most=most))
    try:
        programs = transcript.programs(Path(run.run_dir), over=True)
        texts = dict.fromkeys(text for each in programs for text in _kept_prompt(each.file.parent, most))
    except NotRegularError as error:
        raise RefusedError(str(error), look) from None
    if not texts:
        raise NotFoundError(f"the prompt of attempt {run.attempt} is not kept any more ([worker].keep_runs)", look)
    return AttemptPrompt(job.job_id, run.attempt, redact_text("\n\n---\n\n".join(texts)))


def task(service: Service, job_id: str) -> str:
    """Return the task of a job's tree as it was ordered. Its placeholders for secrets are valid in a new order."""
    root = jobs.get(service, job_id).root_job_id
    if (tree := tree_rows.get(service.store, root)) is None:
        raise NotFoundError(f"the input of the task {root} is not kept any more", f"service job tree {root}")
    return service.artifacts.read(tree.start.assignment.prompt)


def _kept_prompt(folder: Path, most: int) -> Iterator[str]:
    for file in PROMPT_FILES:
        with suppress(FileNotFoundError):
            yield content_of(folder / file, most).decode(errors="replace")
            return


def _attempt(service: Service, job_id: str, attempt: int | None) -> tuple[JobRecord, AttemptRow | None, list[int]]:
    """Return a job, one of its attempts, and the numbers of all; no attempt if the job has not begun yet."""
    job = jobs.get(service, job_id)
    runs = {run.attempt: run for run in attempt_rows.of_job(service.store, job.job_id)}
    look = f"service job show {job.job_id}"
    if not runs and job.ended_at is not None:
        raise NotFoundError(f"{job.job_id} never ran", look)
    if not runs and attempt is None:
        return job, None, []
    run = runs.get(max(runs) if attempt is None else attempt)
    if run is None:
        others = f"its attempts: {', '.join(map(str, runs))}" if runs else "it has not begun yet"
        raise NotFoundError(f"{job.job_id} has no attempt {attempt}; {others}", look)
    return job, run, [*runs]


def _elsewhere(service: Service, run: AttemptRow, command: str) -> OtherHost | None:
    """Return a client for the host on which an attempt ran; None if it ran here."""
    if run.host == service.settings.host:
        return None
    return OtherHost(service, run.host, f"attempt {run.attempt} ran", f"service job {command} {run.job_id}")


def _path(run: AttemptRow, part: str) -> str:
    return f"attempts/{run.job_id}/{run.attempt}/{part}"


def _programs(job: JobRecord, run: AttemptRow, attempts: Sequence[int]) -> tuple[ProgramOutput, ...]:
    """Return the outputs of an attempt's programs; raise `NotFoundError` if they were removed."""
    over = job.state.has_ended or run.ended_at is not None or run.attempt != max(attempts)
    if over and not Path(run.run_dir).is_dir():
        raise NotFoundError(
            f"the output of attempt {run.attempt} is not kept any more ([worker].keep_runs)",
            f"service job show {job.job_id}",
        )
    return transcript.programs(Path(run.run_dir), over=over)


def _in_worktree(entry: Entry, worktree: str | None) -> Entry:
    """Shorten an entry's paths to be relative to the worktree."""
    if not worktree or not (entry.files or entry.argument):
        return entry
    files = tuple(file.removeprefix(f"{worktree}/") for file in entry.files)
    return entry.model_copy(update={"files": files, "argument": entry.argument.replace(f"{worktree}/", "")})
