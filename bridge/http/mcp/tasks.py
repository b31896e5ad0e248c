"""A tree as a task of the client: followed, asked and answered over any number of sessions (ruling S3).

The id names the tree and the token that made it; nothing else is stored, so a task survives every restart. Ending or
forgetting a task stops following only: the tree goes on. A client without tasks is asked in its call of `follow`.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    RequestParams,
)
from pydantic import ConfigDict, Field

from activities.stations.hook import reach
from bridge.http.mcp import tools
from bridge.http.mcp.answers import Answer
from bridge.http.mcp.route_calls import RouteCalls
from bridge.http.mcp.tools import AnswerArguments, OfJob, Tool
from bridge.http.wire.call import call_of
from bridge.http.wire.thread_pools import read
from bridge.machine.token_scopes import TokenScope
from bridge.operations.jobs import jobs, rounds
from workflows.model.errors import RefusedError
from workflows.model.rows import RoundRecord
from workflows.policy.answers import Verb
from workflows.policy.tree_states import TreeState
from workflows.text.invisible import visible

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2_000
TTL_MS = 30 * 24 * 3600 * 1000
"""How long a client may remember a task. Trees are remembered longer."""

Responses = Mapping[str, Mapping[str, Any]]
"""Responses to forms, by the forms' keys."""

_DECISION = "decision"
_INSTRUCTIONS = "instructions"


class TaskParams(RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(alias="taskId", max_length=200)


class UpdateParams(TaskParams):
    """Parameters of `tasks/update`: an answer for each request for input."""

    model_config = ConfigDict(extra="allow")

    input_responses: dict[str, dict[str, Any]] = Field(alias="inputResponses", max_length=64)


def are_known(capabilities: ClientCapabilities | None) -> bool:
    """Return whether the client said that it has tasks."""
    return EXTENSION in ((capabilities.extensions if capabilities else None) or {})


def has_forms(capabilities: ClientCapabilities | None) -> bool:
    """Return whether the client said that it shows forms. Before 2026-07-28 that takes a session, and none is kept."""
    shows = capabilities.elicitation if capabilities else None
    return shows is not None and (shows.form is not None or shows.url is None)


def refuse_foreign(context: Any, params: TaskParams) -> None:
    """Refuse a task's method from a client without tasks, and one whose header names another task."""
    if not are_known(context.session.client_capabilities):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        message = f"This client does not name the capability {EXTENSION}; call follow instead."
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, needed)
    if decode_header_value(context.request.headers.get(MCP_NAME_HEADER)) not in (None, params.task_id):
        raise MCPError(HEADER_MISMATCH, f"The header {MCP_NAME_HEADER} names another task than taskId.")


async def begin(calls: RouteCalls, tool: Tool, asked: Any) -> dict[str, Any]:
    """Carry out a call of `start` or `follow`, and go on as a task."""
    job = asked.job if isinstance(asked, OfJob) else (await tool.run(calls, asked))["job"]
    root = (await read(jobs.get, calls.service, job)).root_job_id
    summary = await tools.summary_of(calls, root)
    task = {"resultType": "task", "taskId": _id(calls, root), "status": "working", "statusMessage": _words(summary)}
    return task | await read(_times, calls, root)


async def get(calls: RouteCalls, params: TaskParams, result: Any) -> dict[str, Any]:
    """Return a task's state: a question that waits is a request for input, an end is the tool's result."""
    root = _root(calls, params.task_id)
    summary = await tools.summary_of(calls, root)
    task = {"taskId": params.task_id, "statusMessage": _words(summary)} | await read(_times, calls, root)
    match summary["state"]:
        case TreeState.QUEUED | TreeState.RUNNING | TreeState.ENDING:
            return task | {"status": "working"}
        case TreeState.WAITING if _may_answer(calls):
            return task | {"status": "input_required", "inputRequests": await _forms(calls, root, summary)}
        case _:
            ended = await read(result, summary | {"next": tools.next_calls(root, summary)})
            return task | {"status": "completed", "result": ended}


async def update(calls: RouteCalls, params: UpdateParams) -> dict[str, Any]:
    """Carry the answers of forms to their rounds."""
    await _carry(calls, _root(calls, params.task_id), params.input_responses)
    return {}


async def follow_with_forms(calls: RouteCalls, asked: OfJob, responses: Responses) -> Answer:
    """Follow a task for a client with forms: it repeats the call with the responses to those that it was sent."""
    root = (await read(jobs.get, calls.service, asked.job)).root_job_id
    await _carry(calls, root, responses)
    summary = await tools.follow(calls, asked)
    forms = await _forms(calls, root, summary) if _may_answer(calls) else {}
    new = {key: form for key, form in forms.items() if key not in responses}
    return {"resultType": "input_required", "inputRequests": new} if new else summary


def _may_answer(calls: RouteCalls) -> bool:
    """Return whether the token may answer; otherwise nobody fills a form only to be refused."""
    return call_of(calls.scope).scope is TokenScope.ACT


async def _forms(calls: RouteCalls, root: str, summary: Answer) -> dict[str, Any]:
    return {_key(row): _form(row, summary) for row in await read(rounds.open_of, calls.service, root)}


async def _carry(calls: RouteCalls, root: str, responses: Responses) -> None:
    """Carry the answers of forms to their rounds. A form that was declined or is stale changes nothing."""
    waiting = {_key(row): row for row in await read(rounds.open_of, calls.service, root)}
    for key, response in responses.items():
        if response.get("action") != "accept":
            continue
        if (row := waiting.get(key)) is None:
            over = await read(_end_of, calls, root, key)
            raise RefusedError(f"The answer came too late; nothing was done. {over}".strip())
        by_form = replace(calls, client=f"a form of {calls.client}")
        await tools.answer(by_form, _order(row, response.get("content") or {}))
        reach("task answered", root)


def cancel(calls: RouteCalls, params: TaskParams) -> dict[str, Any]:
    """Stop following. The tree goes on: only `stop` ends it."""
    _root(calls, params.task_id)
    return {}


def _id(calls: RouteCalls, root: str) -> str:
    return f"{root}~{_of_caller(calls, root)}"


def _of_caller(calls: RouteCalls, root: str) -> str:
    return sha256(f"{call_of(calls.scope).caller} {root}".encode()).hexdigest()[:16]


def _root(calls: RouteCalls, task_id: str) -> str:
    """Return the tree of a task, if this token made the task."""
    root, _, owner = task_id.partition("~")
    if owner != _of_caller(calls, root):
        raise MCPError(INVALID_PARAMS, "Unknown task: it was started with another token, or never.")
    return root


def _times(calls: RouteCalls, root: str) -> dict[str, Any]:
    """Return when the tree was started, whenever it was followed, and when it was looked at."""
    started, now = jobs.get(calls.service, root).queued_at, time.time()
    created, updated = (datetime.fromtimestamp(at, UTC).isoformat() for at in (started, max(started, now)))
    return {"pollIntervalMs": POLL_MS, "ttlMs": TTL_MS, "createdAt": created, "lastUpdatedAt": updated}


def _words(summary: Answer) -> str:
    waits = f": {summary['waits_for']}" if summary.get("waits_for") else ""
    return visible(f"{summary['title']} ({summary['job']}), {summary['state']}, {summary['jobs']}{waits}")[:500]


def _key(row: RoundRecord) -> str:
    return f"{row.coordinator_id}-r{row.number}-{row.digest[:12]}"


def _end_of(calls: RouteCalls, root: str, key: str) -> str:
    job, _, numbered = key.rpartition("-r")
    number = numbered.partition("-")[0]
    return rounds.end_in_words(calls.service, root, job, int(number)) if number.isdigit() else ""


def _form(row: RoundRecord, summary: Answer) -> dict[str, Any]:
    """Return a round as a form: a field for each question, or the decision about what failed."""
    fields: dict[str, Any] = {}
    for question in row.questions:
        if question.answer is None:
            text = visible(question.prompt)
            fields[question.id] = {"type": "string", "title": question.id, "description": text}
            fields[question.id] |= {"enum": [*question.choices]} if question.choices else {}
    needed = [*fields]
    task = f"{visible(summary['title'])[:200]} ({summary['job']})"
    message = f"{task} asks." if fields else f"A part of {task} failed."
    if not fields:
        fields[_DECISION] = {"type": "string", "enum": [verb for verb in row.verbs if verb != Verb.ANSWER]}
        fields[_INSTRUCTIONS] = {"type": "string", "description": "Note for the agent (optional)"}
        needed = [_DECISION]
        message += "".join(f" {leg.leg or leg.job_id}: {visible(leg.reason)}." for leg in row.failing)
    schema = {"type": "object", "properties": fields, "required": needed}
    params = {"mode": "form", "message": message[:2000], "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def _order(row: RoundRecord, content: Mapping[str, Any]) -> AnswerArguments:
    texts = {name: str(value) for name, value in content.items()}
    order = AnswerArguments(job=row.coordinator_id, round=row.number, digest=row.digest)
    if _DECISION in texts and not row.questions:
        decision = texts[_DECISION]
        if decision not in row.verbs:
            raise RefusedError(f"Unknown decision {decision[:40]!r}. Use one of: {', '.join(row.verbs)}.")
        return order.model_copy(update={"verb": Verb(decision), "text": texts.get(_INSTRUCTIONS, "")})
    return order.model_copy(update={"answers": texts})
