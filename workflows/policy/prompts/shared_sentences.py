"""Parts that all prompts share: the worker and its job, its folder, the operator's instructions, stored texts."""

from collections.abc import Mapping

from workflows.contract.models import Action
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.text.quoted_data import Fences, inline

STARTER = "who started this task"

_THROWN_AWAY = ". Change nothing there: what you or a build write is thrown away."
_FOLDER = {
    Action.ASK: _THROWN_AWAY,
    Action.REVIEW: _THROWN_AWAY,
    Action.IMPLEMENT: (
        ", on a branch of your own. You need not commit: what you leave uncommitted is committed for you."
    ),
}


def who(run: JobRun) -> str:
    """Return the sentence that names the worker, its job, its action and the repository."""
    worker = run.assignment.worker
    role = f" Your role: {inline(worker.role)}." if worker.role else ""
    name, what = inline(worker.name), run.assignment.action
    return f"You are {name}, doing the job `{run.job_id}` ({what}) on the repository {inline(run.repo)}.{role}"


def rule(run: JobRun) -> str:
    """Return the sentence that says whether changes in the job's folder are kept."""
    return f"Your working folder is a checkout of it{_FOLDER[run.assignment.action]}"


def standing(template: str, fences: Fences) -> list[str]:
    """Return the operator's instructions for every job of an agent, fenced; empty without any."""
    return [f"Keep to this in every job:\n\n{fences.block(template, 'the operator')}"] if template else []


def text_of(text: Text, bodies: Mapping[str, str]) -> str:
    """Return a stored text, or a note that it is missing from the store."""
    if text.digest is None:
        return text.inline or ""
    return bodies.get(text.digest, f"[not available: the stored text {text.digest} could not be read]")
