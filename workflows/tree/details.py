"""A tree rendered as text: for the Temporal web UI while the tree runs, and for a terminal at any time."""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from textwrap import wrap

from workflows.model.event_kinds import EventKind
from workflows.model.rows import JobRecord, QuestionRecord, Records, RoundRecord
from workflows.model.settings import Bounds
from workflows.model.spend import Ledger
from workflows.model.states import JobState
from workflows.policy import binding_words
from workflows.policy.cut_short import CUT_SHORT, task_words
from workflows.policy.decisions import decision_label
from workflows.policy.prices import dollars
from workflows.text import durations
from workflows.text.durations import clock
from workflows.text.invisible import one_line
from workflows.text.markdown import cut, summary_line
from workflows.tree.pause_rounds import open_rounds
from workflows.tree.state import TreeMemory

SUMMARY_LIMIT = 100
COLUMN = 68
"""Characters in a line of the web UI's box for current details, on a screen 1 400 pixels wide."""

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
_SAID_BY_ROWS = {
    EventKind.JOB_QUEUED,
    EventKind.JOB_BEGUN,
    EventKind.JOB_ENDED,
    EventKind.CONTINUATION_ENQUEUED,
}
"""Events of a job's state, which the job's row describes in fewer words."""
_BELOW = {"": "", "├─ ": "│  ", "└─ ": "   "}


def details(state: TreeMemory) -> str:
    """Return Markdown with the task's state and reason, the spend against every bound, and the tree of jobs."""
    task = state.task
    why = f": {plain(task.why.removeprefix(f'{CUT_SHORT}: '))}" if task.why else ""
    asked = state.input.assignment
    related = binding_words.in_words(asked.pull_request, asked.issue, asked.github)
    parts = [f"**{plain(task.title)}**", *([related] if related else []), f"**{task_words(task)}**{why}"]
    waiting = open_rounds(state)
    if task.next and not waiting:
        parts.append(f"Next: `{plain(task.next)}`")
    for row in waiting:
        # A command is never folded, so that it can be pasted. Outside a fence the page wraps its line only visually.
        parts += [fence(_round(row)), *(f"`{plain(command)}`" for command in row.commands)]
        parts.append("\n".join([_BY_HAND, "```json", *by_hand(row, several=len(waiting) > 1), "```"]))
    if state.last_refusal:
        parts.append(f"Refused: {plain(state.last_refusal)[:REFUSAL_LIMIT]}")
    parts.append(spend(state.input.settings.bounds, state.ledger()))
    return "\n\n".join([*parts, fence(job_lines(state.jobs.values()))])


def fence(lines: Iterable[str]) -> str:
    """Fence lines, folded so that they fit the web UI's box."""
    return "\n".join(["```", *(part for line in lines for part in _fold(line)), "```"])


@lru_cache(maxsize=1024)
def _fold(line: str) -> list[str]:
    """Fold a long line, with the continuation indented. Cached, since most lines of a wide tree stay equal from step to
    step.
    """
    if len(line) <= COLUMN:  # nearly all lines: wrapping these too took two fifths of a wide tree's own steps
        return [line]
    indent = len(line) - len(line.lstrip(" │├└─"))
    below = line[:indent].replace("├─", "│ ").replace("└─", "  ") + "    "
    return wrap(line, COLUMN, subsequent_indent=below, drop_whitespace=False, replace_whitespace=False)


def _round(waiting: RoundRecord) -> Iterator[str]:
    """Yield the questions, the choices and the expiry of a round (rulings B3, F6)."""
    yield f"waits for a person until {clock(waiting.expires_at)} (round {waiting.number}, {waiting.kind})"
    for asked in waiting.questions:
        choices = f" ({' / '.join(plain(each) for each in asked.choices)})" if asked.choices else ""
        yield f"  {asked.id}: {plain(asked.prompt)[:QUESTION_LIMIT]}{choices[:QUESTION_LIMIT]}"
    for leg in waiting.failing:
        yield f"  {leg.leg} {leg.state}: {plain(leg.reason)[:QUESTION_LIMIT]}"


def wrote(records: Records) -> str:
    """Describe what happened, for the line beside a step in the web UI: `the tree is done; root succeeded,
    approved`.
    """
    happened = [plain(event.message) for event in records.events if event.kind not in _SAID_BY_ROWS]
    moved = {event.job_id for event in records.events if event.kind in _SAID_BY_ROWS}
    jobs: dict[str, list[str]] = {}
    for job in records.jobs:
        if job.job_id in moved or (job.state is JobState.RUNNING and job.reason):
            jobs.setdefault(_became(job), []).append(_label(job))
    became = [f"{', '.join(names)} {state}" for state, names in jobs.items()]
    return summary_line("; ".join([*happened, *became]) or "rows brought up to date")


def _label(job: JobRecord) -> str:
    """Return a job's short name within its tree: its leg, `root`, or the number and cause of a continuation."""
    number = job.job_id.removeprefix(job.root_job_id)
    return job.delegation_id or (f"{number} ({job.name})" if number else "root")


def _became(job: JobRecord) -> str:
    """Return a job's state, with its decision, or with why it waits or did not succeed."""
    word = decision_label(job.state, job.decision)
    why = "" if job.state in {JobState.QUEUED, JobState.SUCCEEDED} else cut(plain(job.reason), SUMMARY_LIMIT)
    return job.state.value + (f", {word}" if word else "") + (f": {why}" if why else "")


def whole(state: TreeMemory) -> Records:
    """Return every row of a tree, to overwrite the stored rows after a reset of the workflow."""
    now = {"revision": state.revision}
    return Records(
        task=state.task.model_copy(update=now),
        jobs=tuple(job.model_copy(update=now) for job in state.jobs.values()),
        rounds=open_rounds(state),
        revision=state.revision,
        whole=True,
    )


def by_hand(waiting: RoundRecord, *, several: bool) -> Iterator[str]:
    """Yield the JSON of a signal or update that ends this round, one line per key (ruling F6)."""
    lines = [f"{plain(asked.id)}: {_suggestion(asked)}" for asked in waiting.questions]
    order: dict[str, object] = {"verb": waiting.verbs[0]}
    order |= {"job_id": waiting.coordinator_id} if several else {}
    order["text"] = lines or "<instructions, or nothing>"
    yield from json.dumps(order, indent=2, ensure_ascii=False).splitlines()


def _suggestion(asked: QuestionRecord) -> str:
    return f"<{' | '.join(plain(each) for each in asked.choices)}>"[:SUMMARY_LIMIT] if asked.choices else "<text>"


def spend(bounds: Bounds, used: Ledger) -> str:
    """Return the spend against each bound."""
    tokens = f" of {bounds.max_delegation_token_budget:,}" if bounds.max_delegation_token_budget else ""
    budget = f" of ${bounds.max_delegation_cost_usd:.2f}" if bounds.max_delegation_cost_usd else ""
    clock = durations.format_duration(int(used.elapsed_seconds))
    return (
        f"jobs {used.jobs} of {bounds.max_delegation_total_jobs}, "
        f"time {clock} of {durations.format_duration(bounds.max_delegation_wall_clock_seconds)}, "
        f"tokens {used.tokens:,}{tokens}, cost {dollars(used.cost_usd, assumed=used.price_assumed)}{budget}"
    )


def job_lines(jobs: Iterable[JobRecord]) -> Iterator[str]:
    """Yield a line for each job, below the job that delegated or continued it, in dispatch order."""
    return (f"{stem}{_line(job)}" for stem, job in draw(jobs))


def draw(jobs: Iterable[JobRecord]) -> Iterator[tuple[str, JobRecord]]:
    """Yield the tree's jobs in dispatch order, each with the tree lines to draw before it."""
    children: dict[str | None, list[JobRecord]] = {}
    for job in jobs:
        children.setdefault(job.parent_job_id, []).append(job)
    waiting = [("", "", job) for job in reversed(children.get(None, []))]
    while waiting:
        stem, branch, job = waiting.pop()
        yield f"{stem}{branch}", job
        below = children.get(job.job_id, [])
        inner = stem + _BELOW[branch]
        waiting += [(inner, "└─ " if child is below[-1] else "├─ ", child) for child in reversed(below)]


def _line(job: JobRecord) -> str:
    name = job.delegation_id or ("root" if job.continuation == "none" else f"({job.continuation})")
    number = job.job_id.removeprefix(job.root_job_id) or job.job_id
    attempt = f" attempt {job.attempt}" if job.attempt > 1 else ""
    decision = f" {word}" if (word := decision_label(job.state, job.decision)) else ""
    decision += ", batch blocked" if job.has_blocked_batch else ""
    cost = dollars(job.cost_usd, assumed=job.price_assumed)
    spent = f" [{job.usage.total:,} tokens, {cost}]" if job.usage.total else ""
    words = cut(plain(job.summary or job.reason), SUMMARY_LIMIT)
    head = f"{MARKS[job.state]} {number} {name} {job.agent} {job.action}: {job.state}"
    return f"{head}{attempt}{decision}{spent}  {words}".rstrip()


def plain(text: str) -> str:
    """Return one line without the service's Markdown markup."""
    return one_line(" ".join(text.replace("`", "'").replace("*", " ").split()))
