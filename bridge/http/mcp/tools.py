"""The nine tools: what each takes, and the operations that it calls (ruling S2)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from activities.store.tree_list import TreeFilter
from bridge.http.mcp.answers import LONGEST, SHORT, Answer, Quote, shorten, without_empty
from bridge.http.mcp.route_calls import RouteCalls
from bridge.http.wire import projections
from bridge.http.wire.parameters import JOB_PATTERN
from bridge.http.wire.thread_pools import read
from bridge.operations.branches import diffs
from bridge.operations.jobs import jobs, output, rounds, tree_list
from bridge.operations.jobs.views import listed_tree
from bridge.operations.orders import attention
from bridge.operations.service import Service
from workflows.model.errors import RefusedError
from workflows.model.rounds import last_words
from workflows.model.rows import RoundRecord
from workflows.policy.answers import CROSSED, Verb, compose
from workflows.policy.recipes import Recipe
from workflows.policy.tree_states import TreeState

FOLLOW_SECONDS = 25.0
"""Clients end a call after 60 seconds, some after 30."""

LOOK_SECONDS = 0.5
LISTED = 20
ROUNDS = 3
"""The number of ended rounds in a task's summary."""
TREES = "service://trees/"
"""The URIs of resources begin so; a job follows, and a part of it."""

WHOLE = "whole"
"""The field that names the resource of a text that an answer has only in part."""


class Effect(StrEnum):
    """The most that a tool does."""

    READS = "reads"
    WRITES = "writes"
    DESTROYS = "destroys"


class Arguments(BaseModel):
    """The arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")


class OfJob(Arguments):
    """Arguments that name a job."""

    job: str = Field(pattern=JOB_PATTERN, description="A job, such as job-0c5e2v7q9a3k; its first one names a task.")


class StartArguments(Arguments):
    """Arguments of `start`."""

    message: str = Field(min_length=1, description="What is to be done.")
    repository: str = Field(description="The registered repository.")
    agent: str = Field(default="", pattern="^[^/]*$", description="The agent; or give `recipe`.")
    recipe: Recipe | None = Field(default=None, description="A ready plan of several agents.")
    action: Literal["ask", "implement", "review"] = Field(
        default="ask", description="`ask` plans, and may have others implement."
    )
    pull_request: int | None = None
    budget: float | None = Field(default=None, description="Dollars at most.")
    request_id: str | None = Field(default=None, description="Repeat a call with its id: the work starts once.")
    follow: bool = Field(default=False, description="Follow it as a task, in clients that have tasks.")


class TreesArguments(Arguments):
    """Arguments of `trees`."""

    state: TreeState | None = None
    repository: str | None = None
    search: str = ""
    cursor: str | None = None


class LookArguments(OfJob):
    """Arguments of `look`."""

    what: Literal["summary", "tree", "events", "log", "result", "prompt"] = "summary"
    cursor: int | None = Field(default=None, description="For events and log: go on from `next_cursor`.")


class ChangesArguments(OfJob):
    """Arguments of `changes`."""

    path: str | None = Field(default=None, description="Only this file.")


class AnswerArguments(OfJob):
    """Arguments of `answer`."""

    round: int = Field(description="The round, as `waiting` shows it.")
    digest: str = Field(description="Its digest: a changed question is refused.")
    verb: Verb = Verb.ANSWER
    answers: dict[str, str] = Field(default={}, description="For `answer`: a text for each question id.")
    text: str = Field(default="", description="For other verbs: instructions, or a duration.")
    partial: bool = Field(default=False, description="Leave other questions open.")
    other: bool = Field(default=False, description="An answer that is none of the choices is meant.")


class FinishArguments(OfJob):
    """Arguments of `finish`."""

    how: Literal["merge", "revise", "retry", "review", "publish"]
    text: str = Field(default="", description="For `revise`: what is to be changed.")
    request_id: str | None = None


class StopArguments(OfJob):
    """Arguments of `stop`."""

    how: Literal["kill", "dismiss", "drop"] = Field(description="End a task; give up a blocked one; remove branches.")
    now: bool = Field(default=False, description="For `kill`: stop its agents too.")
    unmerged: bool = Field(default=False, description="For `drop`: remove unmerged work too.")


class NoArguments(Arguments):
    """A tool without arguments."""


@dataclass(frozen=True)
class Tool:
    """A tool: what a model is told about it, what it may do, and the function that carries it out."""

    name: str
    says: str
    effect: Effect
    takes: type[Arguments]
    run: Callable[[RouteCalls, Any], Awaitable[Answer]] = field(repr=False)

    def follows(self, asked: Arguments) -> bool:
        """Return whether this call is to go on as a task of the client (ruling S3)."""
        return self.run is follow or (isinstance(asked, StartArguments) and asked.follow)


async def start(calls: RouteCalls, asked: StartArguments) -> Answer:
    """Start a task."""
    options = {"repo": asked.repository, "pull_request": asked.pull_request, "budget": asked.budget}
    if asked.recipe:
        body = {"recipe": asked.recipe, "goal": asked.message, **options}
        begun = await calls.post("/v1/orchestrate", body, asked.request_id)
    else:
        path = f"/v1/agents/{asked.agent}/{asked.action}"
        begun = await calls.post(path, {"message": asked.message, **options}, asked.request_id)
    job = begun["job_id"]
    return without_empty(
        {
            "job": job,
            "state": "started",
            "caveat": begun.get("caveat"),
            "next": [f"follow(job={job})", f"look(job={job})"],
        }
    )


async def follow(calls: RouteCalls, asked: OfJob) -> Answer:
    """Wait until a task ends, or needs somebody."""
    root = (await read(jobs.get, calls.service, asked.job)).root_job_id
    until = asyncio.get_running_loop().time() + FOLLOW_SECONDS
    with calls.scope["app"].state.held.wait(calls.scope):
        while True:
            summary = await summary_of(calls, root)
            moves = summary["state"] in (TreeState.QUEUED, TreeState.RUNNING, TreeState.ENDING)
            if not moves or asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(LOOK_SECONDS)
    return summary | {"next": [f"follow(job={root})"] if moves else next_calls(root, summary)}


async def trees(calls: RouteCalls, asked: TreesArguments) -> Answer:
    """List tasks."""
    query = {"state": asked.state, "repo": asked.repository, "search": asked.search, "cursor": asked.cursor}
    page = await calls.get("/v1/trees", limit=LISTED, **query)
    listed = [_listed(tree) for tree in page["trees"]]
    return without_empty({"trees": listed or "none", "next_cursor": page["next_cursor"]})


async def look(calls: RouteCalls, asked: LookArguments) -> Answer:
    """Look at a job."""
    service, job, path = calls.service, asked.job, f"/v1/jobs/{asked.job}"
    match asked.what:
        case "summary":
            return await _job_summary(calls, job)
        case "tree":
            tree = await calls.get(f"{path}/tree")
            return {"task": tree["task"]["title"], "jobs": [_line(row) for row in tree["jobs"]]}
        case "events":
            page = await calls.get(f"{path}/events", cursor=asked.cursor, limit=50)
            events = [f"{event['kind']}: {event['message']}" for event in page["events"]]
            return without_empty({"events": events or "none", "next_cursor": page["next_cursor"]})
        case "log":
            page = await calls.get(f"{path}/log", cursor=asked.cursor, limit=30)
            entries = [{entry["kind"]: _said(entry, job)} for entry in page["entries"]]
            return without_empty({"attempt": page["attempt"], "next_cursor": page["next_cursor"], "log": entries})
        case "result":
            record = await calls.get(path)
            result = json.dumps(record["result"], indent=1, ensure_ascii=False) if record["result"] else ""
            shown = _cut(result, LONGEST, job, "result", f"service job show {job}")
            return {"state": record["state"], **shown}
        case "prompt":
            prompt = await read(output.prompt, service, job)
            shown = _cut(prompt.prompt, LONGEST, job, "prompt", f"service job prompt {job}")
            return {"attempt": prompt.attempt, **shown}


async def changes(calls: RouteCalls, asked: ChangesArguments) -> Answer:
    """Return the diff of a job, or of the whole task for its first job."""
    return await read(_changes, calls, asked)


async def waiting(calls: RouteCalls, asked: NoArguments) -> Answer:
    """List what needs a person."""
    del asked
    report = await read(attention.find, calls.service)
    groups = {
        "rounds": [_round(row) | {"task": row.title} for row in report.waiting[:LISTED]],
        "blocked": [_blocked(task.root_job_id, task.title, task.reason) for task in report.blocked[:LISTED]],
        "conflicts": [way.root_job_id for way in report.conflicts[:LISTED]],
        "refused_delegations": [job.job_id for job in report.preflight_failed[:LISTED]],
        "hosts": [host.says for host in report.hosts],
        "github": [trouble.says for trouble in report.github],
        "standing_still": [stall.message for stall in report.stalled],
        "undelivered": [note.message for note in report.undelivered[:LISTED]],
    }
    return without_empty(groups) or {"waiting": "nothing"}


async def answer(calls: RouteCalls, asked: AnswerArguments) -> Answer:
    """Answer an open round, or decide about its failures."""
    text = asked.text
    if asked.verb is Verb.ANSWER:
        composed = compose(asked.answers, await read(_questions, calls.service, asked))
        if composed is None:
            raise RefusedError(CROSSED)
        text = composed
    body = {
        "verb": asked.verb,
        "text": text,
        "round": asked.round,
        "digest": asked.digest,
        "partial": asked.partial,
        "other": asked.other,
    }
    decided = await calls.post(f"/v1/jobs/{asked.job}/resume", body)
    return {"message": decided["message"], "applied": decided["applied"], "next": [f"follow(job={asked.job})"]}


def _questions(service: Service, asked: AnswerArguments) -> list[str]:
    """Return the ids of the questions that wait for this job, and those that were answered: a route refuses others."""
    waits = rounds.open_of(service, jobs.get(service, asked.job).root_job_id)
    open_ids = (question.id for row in waits if row.coordinator_id == asked.job for question in row.questions)
    return [*dict.fromkeys((*open_ids, *asked.answers))]


async def finish(calls: RouteCalls, asked: FinishArguments) -> Answer:
    """Merge, publish, revise, review or retry work."""
    body = {"text": asked.text} if asked.how == "revise" else {}
    return without_empty(await calls.post(f"/v1/jobs/{asked.job}/{asked.how}", body, asked.request_id))


async def stop(calls: RouteCalls, asked: StopArguments) -> Answer:
    """End a task, or remove its branches."""
    body = {"kill": {"now": asked.now}, "drop": {"force": asked.unmerged}, "dismiss": {}}[asked.how]
    return without_empty(await calls.post(f"/v1/jobs/{asked.job}/{asked.how}", body))


async def summary_of(calls: RouteCalls, root: str) -> dict[str, Any]:
    """Return a task's state, what it waits for, and how its last rounds ended: no client shows why a form was stale."""
    tree = await read(_tree, calls.service, root)
    rows = await read(rounds.of_tree, calls.service, root)
    waits = [_round(row) for row in rows if row.end is None]
    over = [last_words(row.coordinator_id, row.number, row.closed) for row in rows if row.end is not None]
    return _listed(tree) | without_empty({"needs_you": waits, "rounds": over[-ROUNDS:]})


def _tree(service: Service, root: str) -> dict[str, Any]:
    [row] = tree_list.find(service, TreeFilter(root=root, limit=1))
    return projections.hide_paths(service, listed_tree(row)).model_dump(mode="json")


async def _job_summary(calls: RouteCalls, job: str) -> Answer:
    record = await calls.get(f"/v1/jobs/{job}")
    if record["job_id"] == record["root_job_id"]:
        summary = await summary_of(calls, job)
        return summary | {"next": next_calls(job, summary)}
    shown = (
        "job_id",
        "state",
        "agent",
        "action",
        "reason",
        "decision",
        "branch",
        "head_sha",
        "cost_usd",
        "root_job_id",
    )
    fields = {name: record[name] for name in shown}
    return without_empty(fields | {"summary": Quote(record["summary"]), "next": [f"look(job={job}, what=log)"]})


def _listed(tree: Mapping[str, Any]) -> dict[str, Any]:
    summary = tree["tree"]
    return without_empty(
        {
            "job": tree["job_id"],
            "state": summary["state"],
            "title": summary["title"],
            "repository": tree["repo"],
            "waits_for": summary["waits_for"]["what"],
            "jobs": f"{summary['ended_jobs']} of {summary['jobs']} ended",
            "cost_usd": round(summary["cost_usd"], 4),
            "summary": Quote(shorten(summary["last_words"], SHORT, f"look(job={tree['job_id']}, what=result)")),
        }
    )


def _said(entry: Mapping[str, Any], job: str) -> Quote:
    return Quote(shorten(entry["text"] or entry["argument"], SHORT, f"service job log {job}"))


def _line(row: Mapping[str, Any]) -> str:
    words = (row["job_id"], row["delegation_id"] or row["continuation"], row["agent"], row["state"], row["reason"])
    return " ".join(word for word in words if word)


def _round(row: RoundRecord) -> dict[str, Any]:
    questions = [
        without_empty({"id": question.id, "question": Quote(question.prompt), "choices": [*question.choices]})
        for question in row.questions
        if question.answer is None
    ]
    failing = [{"part": leg.leg or leg.job_id, "reason": Quote(leg.reason or leg.state)} for leg in row.failing]
    named = {"job": row.coordinator_id, "round": row.number, "digest": row.digest, "verbs": [*row.verbs]}
    return without_empty(named | {"questions": questions, "failed": failing})


def _blocked(root: str, title: str, reason: str) -> Answer:
    return {"job": root, "task": title, "reason": Quote(reason)}


def next_calls(root: str, summary: Answer) -> list[str]:
    """Return the calls that fit a task's state."""
    match summary["state"]:
        case TreeState.WAITING:
            return ["answer(job, round, digest, …) of needs_you"]
        case TreeState.DONE | TreeState.CUT_SHORT:
            return [f"changes(job={root})", f"finish(job={root}, how=merge)"]
        case TreeState.BLOCKED:
            return [f"look(job={root}, what=tree)", "finish(job=THE FAILED JOB, how=retry)"]
        case TreeState.FAILED | TreeState.CANCELLED:
            return [f"look(job={root}, what=events)"]
        case _:
            return [f"follow(job={root})"]


def _changes(calls: RouteCalls, asked: ChangesArguments) -> Answer:
    job = asked.job
    diff = diff_of(calls.service, job)
    text, cut = diffs.beginning(_of_path(diff, asked.path), diffs.JSON_LIMIT)
    rest = f"service job diff {job}{' --tree' if diff.source == 'tree' else ''}"
    listed = [f"{change.path} +{change.added} -{change.removed}" for change in diff.files]
    most = LONGEST // 2 if asked.path is None else LONGEST
    return without_empty(
        {
            "files": listed[:200] or "none",
            "left_out": [*diff.left_out],
            **_cut(text + ("\n[cut here]" if cut else ""), most, job, "diff", rest),
            "next": [f"changes(job={job}, path=FILE)"] if asked.path is None and len(text) > most else [],
        }
    )


def diff_of(service: Service, job: str) -> diffs.JobDiff:
    """Return the diff of a job, or of the whole task for its first job."""
    whole = jobs.get(service, job).root_job_id == job
    return diffs.of_tree(service, job) if whole else diffs.of_job(service, job)


def _cut(text: str, most: int, job: str, part: str, rest: str) -> dict[str, Any]:
    """Return a part of a job's work, and where all of it is if that is too long."""
    cut = {WHOLE: f"{TREES}{job}/{part}"} if len(text.encode()) > most else {}
    return {**cut, part: Quote(shorten(text, most, rest))}


def _of_path(diff: diffs.JobDiff, path: str | None) -> Iterator[bytes]:
    if path is None:
        return diff.pieces()
    text = b"".join(diff.pieces()).decode("utf-8", "replace")
    return iter([file.text.encode() for file in diffs.files(text) if file.path == path])


TOOLS = (
    Tool(
        "start",
        "Start coding agents on a task: one agent, or a recipe's team. It goes on after this session.",
        Effect.WRITES,
        StartArguments,
        start,
    ),
    Tool(
        "follow",
        "Wait up to 25 s for a task's end or question. Still running: call again.",
        Effect.READS,
        OfJob,
        follow,
    ),
    Tool("trees", "List tasks, newest first.", Effect.READS, TreesArguments, trees),
    Tool(
        "look",
        "Look at a task or job: summary, its parts, events, transcript, result, prompt.",
        Effect.READS,
        LookArguments,
        look,
    ),
    Tool("changes", "Show the diff of a task or a job.", Effect.READS, ChangesArguments, changes),
    Tool(
        "waiting",
        "List what needs a person, with questions and choices.",
        Effect.READS,
        NoArguments,
        waiting,
    ),
    Tool(
        "answer",
        "Carry a person's answer or decision to a waiting task. Ask the person first; never answer for them.",
        Effect.DESTROYS,
        AnswerArguments,
        answer,
    ),
    Tool(
        "finish",
        "Merge a task's work into its branch, publish a pull request, send work back, review it, retry a failed job.",
        Effect.WRITES,
        FinishArguments,
        finish,
    ),
    Tool("stop", "End a task, or remove its branches.", Effect.DESTROYS, StopArguments, stop),
)
