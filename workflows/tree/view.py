"""A tree in words: what the Temporal web UI shows while it runs, and a terminal any time."""

import json
from collections.abc import Iterable, Iterator

from workflows.contract import durations
from workflows.policy.bounds import Ledger
from workflows.policy.settings import Bounds
from workflows.tree.jobs import JobState
from workflows.tree.records import JobRecord, QuestionRecord, RoundRecord
from workflows.tree.round_view import clock, open_rounds
from workflows.tree.state import TreeState

SUMMARY_LIMIT = 100
QUESTION_LIMIT = 600
REFUSAL_LIMIT = 600
_BY_HAND = "To answer from here, send the signal or the update `resume` with this, put right:"
MARKS = {
    JobState.QUEUED: "·",
    JobState.RUNNING: "▶",
    JobState.SUCCEEDED: "✔",
    JobState.FAILED: "✘",
    JobState.BLOCKED: "■",
    JobState.CANCELLED: "○",
    JobState.SKIPPED: "-",
}
_BELOW = {"": "", "├─ ": "│  ", "└─ ": "   "}


def details(state: TreeState) -> str:
    """Markdown: the task and why it stands where it does, the spend against every bound, the tree of jobs."""
    task = state.task
    why = f": {plain(task.reason)}" if task.reason and task.state != "open" else ""
    parts = [f"**{plain(task.title)}**", f"**{task.state}**{why}"]
    waiting = open_rounds(state)
    if task.next and not waiting:
        parts.append(f"Next: `{plain(task.next)}`")
    parts += ["\n".join(["```", *_round(each), "```"]) for each in waiting]
    parts += ["\n".join([_BY_HAND, "```json", *by_hand(each, several=len(waiting) > 1), "```"]) for each in waiting]
    if state.last_refusal:
        parts.append(f"Refused: {plain(state.last_refusal)[:REFUSAL_LIMIT]}")
    parts.append(spend(state.input.settings.bounds, state.ledger()))
    return "\n\n".join([*parts, "\n".join(["```", *nested(state.jobs.values()), "```"])])


def _round(waiting: RoundRecord) -> Iterator[str]:
    """What is asked, the choices, until when, and the exact commands (rulings B3, F6)."""
    yield f"waits for a person until {clock(waiting.expires_at)} (round {waiting.number}, {waiting.kind})"
    for asked in waiting.questions:
        choices = f" ({' / '.join(plain(each) for each in asked.choices)})" if asked.choices else ""
        yield f"  {asked.id}: {plain(asked.prompt)[:QUESTION_LIMIT]}{choices[:QUESTION_LIMIT]}"
    for leg in waiting.failing:
        yield f"  {leg.leg} {leg.state}: {plain(leg.reason)[:QUESTION_LIMIT]}"
    yield from (f"  {plain(command)}" for command in waiting.commands)


def by_hand(waiting: RoundRecord, *, several: bool) -> Iterator[str]:
    """The JSON of a signal or update that ends this round, a short line per key (ruling F6)."""
    lines = [f"{plain(asked.id)}: {_suggested(asked)}" for asked in waiting.questions]
    order: dict[str, object] = {"verb": waiting.verbs[0]}
    order |= {"job_id": waiting.coordinator_id} if several else {}
    order["text"] = lines or "<instructions, or nothing>"
    yield from json.dumps(order, indent=2, ensure_ascii=False).splitlines()


def _suggested(asked: QuestionRecord) -> str:
    return f"<{' | '.join(plain(each) for each in asked.choices)}>"[:SUMMARY_LIMIT] if asked.choices else "<text>"


def spend(bounds: Bounds, used: Ledger) -> str:
    """What is used of each bound."""
    tokens = f" of {bounds.max_delegation_token_budget:,}" if bounds.max_delegation_token_budget else ""
    dollars = f" of ${bounds.max_delegation_cost_usd:.2f}" if bounds.max_delegation_cost_usd else ""
    clock = durations.format_duration(int(used.elapsed_seconds))
    return (
        f"jobs {used.jobs} of {bounds.max_delegation_total_jobs}, "
        f"time {clock} of {durations.format_duration(bounds.max_delegation_wall_clock_seconds)}, "
        f"tokens {used.tokens:,}{tokens}, cost ${used.cost_usd:.2f}{dollars}"
    )


def nested(jobs: Iterable[JobRecord]) -> Iterator[str]:
    """Each job on a line, under the one that delegated or continued it, in dispatch order."""
    children: dict[str | None, list[JobRecord]] = {}
    for job in jobs:
        children.setdefault(job.parent_job_id, []).append(job)
    waiting = [("", "", job) for job in reversed(children.get(None, []))]
    while waiting:
        stem, branch, job = waiting.pop()
        yield f"{stem}{branch}{_line(job)}"
        below = children.get(job.job_id, [])
        inner = stem + _BELOW[branch]
        waiting += [(inner, "└─ " if child is below[-1] else "├─ ", child) for child in reversed(below)]


def _line(job: JobRecord) -> str:
    name = job.delegation_id or ("root" if job.continuation == "none" else f"({job.continuation})")
    number = job.job_id.removeprefix(job.root_job_id) or job.job_id
    attempt = f" attempt {job.attempt}" if job.attempt > 1 else ""
    decided = f" {job.decision}" if job.decision else ""
    spent = f" [{job.usage.total:,} tokens, ${job.cost_usd:.2f}]" if job.usage.total else ""
    said = plain(job.summary or job.reason)
    said = said if len(said) <= SUMMARY_LIMIT else said[: SUMMARY_LIMIT - 1] + "…"
    head = f"{MARKS[job.state]} {number} {name} {job.agent} {job.action}: {job.state}"
    return f"{head}{attempt}{decided}{spent}  {said}".rstrip()


def plain(text: str) -> str:
    """One line that cannot dress up as markup of ours."""
    return " ".join(text.replace("`", "'").replace("*", " ").split())
