"""The environment of an agent's program: variables of an allow-list, variables that the settings grant, and variables
about the job.
"""

import os
from collections.abc import Iterable, Mapping

from workflows.model.jobs import JobRun
from workflows.policy import binding_words

ALLOWED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


def environment(run: JobRun, granted: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the complete environment of a run; no other variables of the worker reach the agent."""
    return allowed_variables(granted, environ) | job_variables(run)


def allowed_variables(granted: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every program of the service gets: those of the allow-list, and those that the settings
    grant.
    """
    return {name: environ[name] for name in (*ALLOWED, *granted) if name in environ}


def job_variables(run: JobRun) -> dict[str, str]:
    """Return the variables that describe the job; unset ones are empty, so scripts need no defaults."""
    return {
        "SERVICE_JOB_ID": run.job_id,
        "SERVICE_ROOT_JOB_ID": run.root_job_id,
        "SERVICE_PARENT_JOB_ID": run.parent_job_id or "",
        "SERVICE_DELEGATION_ID": run.delegation_id or "",
        "SERVICE_DELEGATION_DEPTH": str(run.delegation_depth),
        "SERVICE_TASK_ID": run.task_id,
        "SERVICE_AGENT": run.assignment.worker.name,
        "SERVICE_ACTION": run.assignment.action.value,
        "SERVICE_MODEL": run.assignment.model or "",
        "SERVICE_EFFORT": run.assignment.effort or "",
        "SERVICE_PHASE": run.assignment.phase or "",
        "SERVICE_ATTEMPT": str(run.attempt),
        "SERVICE_CONTINUATION": run.continuation.value,
        **binding_words.variables(run.assignment.pull_request, run.assignment.issue),
    }
