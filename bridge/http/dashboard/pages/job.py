"""The page of one job: its facts, and the orders it accepts (ruling M3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, Plain, SubmittedForm, success
from bridge.http.dashboard.parts import conversation, diff_view, grid, legs
from bridge.http.dashboard.parts.events import newest_first
from bridge.http.dashboard.parts.slow_answers import Recent
from bridge.operations.home import links
from bridge.operations.jobs import jobs, output
from bridge.operations.jobs.claimed_changes import claims, entry, in_sum
from bridge.operations.jobs.jobs import JobDetail
from bridge.operations.orders import revising, trees
from bridge.operations.service import Service
from workflows.model.errors import ServiceError
from workflows.model.states import Continuation, JobState
from workflows.policy.decisions import decision_label

PROMPT_LETTERS = 30_000
PROMPT_BYTES = 4 * PROMPT_LETTERS + 64_000
"""Bytes read of a prompt: enough not to cut a secret where the redaction looks for it."""
LISTS = ("findings", "tests_run", "needs")
OPEN = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True)
class _ShownPrompt:
    text: str = ""
    attempt: int = 0
    cut: bool = False
    problem: str = ""


_prompts = Recent[_ShownPrompt](seconds=60)


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    detail = jobs.detail(service, asked.params["job_id"])
    job = detail.job
    tree = jobs.tree(service, job.job_id)
    events = jobs.events(service, job.job_id, whole_tree=False)
    result = (detail.payload or {}).get("service_result") or {}
    branches = legs.branches_of(service, tree, events, only=job.job_id)
    running = job.state in OPEN
    attempt = conversation.attempt_of(asked) or max((run.attempt for run in detail.attempts), default=None)
    workflow = job.job_id if job.continuation is Continuation.NONE else job.root_job_id
    return {
        "title": f"{job.name} ({job.job_id})",
        "detail": detail,
        "job": job,
        "name": job.name,
        "seconds": grid.seconds_of(job),
        "decision": decision_label(job.state, job.decision),
        "tree": tree,
        "came_from": next((other for other in tree.jobs if other.job_id == job.parent_job_id), None),
        "handed_out": tuple(other for other in tree.jobs if other.parent_job_id == job.job_id),
        "lists": [(name.replace("_", " "), [*map(entry, result.get(name) or ())]) for name in LISTS],
        **_claims(detail, result),
        "branch": branches.legs[0] if branches else None,
        "conflicts": [
            conflict for conflict in legs.conflicts_of(service, tree, events) if conflict.job_id == job.job_id
        ],
        "diff": diff_view.of_job(service, job),
        "comments": revising.received_comments(service, job),
        "prompt": _prompt(service, job.job_id, attempt),
        "talk": conversation.of_job(service, job.job_id, asked),
        "attempts": [run.attempt for run in detail.attempts],
        "attempt": attempt,
        "events": newest_first([*events, *jobs.waits(service, job.job_id)]),
        "running": running,
        "web_ui": links.web_ui(service, workflow),
    }


def _claims(detail: JobDetail, result: Mapping[str, Any]) -> Mapping[str, object]:
    changes = [entry(change) for change in result.get("changes_made") or ()]
    seen = (detail.payload or {}).get("result_observation")
    return {
        "changes": changes,
        "claims": claims(changes, seen) if seen else (),
        "seen": seen,
        "seen_in_sum": in_sum(seen) if seen else "",
    }


def _prompt(service: Service, job_id: str, attempt: int | None) -> _ShownPrompt:
    """Return an attempt's prompt from a cache. Errors are not cached."""
    try:
        key = (str(service.home.root), job_id, attempt)
        return _prompts.get(key, lambda: _read_prompt(service, job_id, attempt))
    except ServiceError as error:
        return _ShownPrompt(problem=error.message)


def _read_prompt(service: Service, job_id: str, attempt: int | None) -> _ShownPrompt:
    prompt = output.prompt(service, job_id, attempt, most=PROMPT_BYTES)
    return _ShownPrompt(prompt.prompt[:PROMPT_LETTERS], prompt.attempt, cut=len(prompt.prompt) > PROMPT_LETTERS)


def _raw(service: Service, asked: PageRequest) -> Iterator[bytes]:
    begin = conversation.number_of(asked, "cursor") or 0
    pieces = output.raw(service, asked.params["job_id"], conversation.attempt_of(asked), begin)
    return (piece for piece, _ in pieces)


async def _retry(service: Service, form: SubmittedForm) -> Done:
    retried = await trees.retry(service, form.asked.params["job_id"], actor=form.actor_in_words)
    return success(f"{retried.job_id} runs again{'; its task is open again' if retried.reopened else ''}.")


async def _merge(service: Service, form: SubmittedForm) -> Done:
    return legs.merge(service, (form.asked.params["job_id"],), form)


async def _drop(service: Service, form: SubmittedForm) -> Done:
    return Done((legs.drop(service, form.asked.params["job_id"], form),))


PAGES = (PageView("/jobs/{job_id}", "job.html", _look, fresh_seconds=1.0),)
PLAIN = (Plain("/jobs/{job_id}/raw", _raw),)
ACTIONS = (
    FormAction("/jobs/{job_id}/retry", _retry),
    FormAction("/jobs/{job_id}/merge", _merge),
    FormAction("/jobs/{job_id}/drop", _drop),
)
