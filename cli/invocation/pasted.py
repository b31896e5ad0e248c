"""Values as people paste them: an id inside a branch, a repository by its address."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from workflows.model import ids
from workflows.model.errors import UsageError, with_correction

_PLACEHOLDERS = ("JOB", "JOB_ID", "PART", "TASK", "ROOT", "LEG", "TREE")
"""Words that documents and help texts write for a job's id."""


def read_pasted(command: Any, carry_out: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command so that it gets job ids and repositories' names, whatever surrounded them."""
    jobs = {parameter.name for parameter in command.params if (parameter.metavar or "").startswith("JOB")}
    repos = {parameter.name for parameter in command.params if parameter.name == "repo"}
    if not jobs | repos:
        return carry_out

    @wraps(carry_out)
    def read_and_run(**values: Any) -> Any:
        read = dict.fromkeys(jobs, _job) | dict.fromkeys(repos, _repository)
        return carry_out(
            **{name: _each(read[name], value) if name in read else value for name, value in values.items()}
        )

    return read_and_run


def _each(read: Callable[[str], str], value: Any) -> Any:
    """Apply a function to a text, or to each text of a list."""
    if isinstance(value, str):
        return read(value) if value else value
    return [read(text) for text in value] if value else value


def _job(typed: str) -> str:
    """Return the job id in a text; any other text as it is. Raise for a placeholder, with the newest tree's id."""
    if typed.strip("<>") not in _PLACEHOLDERS:
        return ids.find(typed) or typed
    from activities.store import job_rows
    from cli.invocation.options import service_here

    error = UsageError(f"{typed} stands for the id of a job", "service job list")
    newest = job_rows.find(service_here().store, job_rows.JobFilter(roots_only=True, limit=1))
    raise with_correction(error, typed, newest[0].job_id) if newest else error


def _repository(typed: str) -> str:
    """Return the name of the repository with this address or path; any other text as it is."""
    if ":" not in typed and typed[0] not in "./~":
        return typed
    from bridge.operations.registry import repos
    from cli.invocation.options import service_here

    return repos.at(service_here(), typed).name
