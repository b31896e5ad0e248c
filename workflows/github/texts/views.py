"""Parts that several comments share: the state in words, the legs, the spend, links."""

from collections.abc import Iterator

from workflows.github.bound_tree import BoundTree
from workflows.github.texts.parts import Part, cell, code, line
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation, TaskState
from workflows.policy.bounds import ledger_of
from workflows.policy.cut_short import task_words
from workflows.policy.decisions import decided
from workflows.text.durations import clock
from workflows.text.inert import address
from workflows.text.markdown import Lines
from workflows.tree.details import MARKS, spend

STATES = {
    TaskState.OPEN: "▶ running",
    TaskState.AWAITING_HUMAN: "⏸ waits for a person",
    TaskState.BLOCKED: "■ blocked",
    TaskState.DONE: "✔ done",
    TaskState.CANCELLED: "○ cancelled",
}
"""The shape and word of each state."""


def state(tree: BoundTree) -> str:
    """Return the shape and word of the tree's state."""
    return f"✘ {task_words(tree.task)}" if tree.task.cut_short else STATES[tree.task.state]


def heading(tree: BoundTree, what: str) -> str:
    return f"### {what}: {line(tree.task.title, 200) or 'untitled'}"


def everything(tree: BoundTree) -> str:
    """Return a sentence on where to see the whole tree."""
    page = f", or on [the dashboard](<{address(tree.page)}>)" if tree.page else ""
    return f"The whole of it: {code(f'service job tree {tree.root}')}{page}."


def legs(tree: BoundTree) -> Lines:
    """Return a table of the legs, in dispatch order."""
    rows = [f"| {_name(job)} | {_worker(job)} | {_state(job)} | {_decision(job)} |" for job in tree.jobs]
    return ["| Leg | Agent | State | Decision |", "|---|---|---|---|", *rows] if rows else []


def used(tree: BoundTree) -> str:
    """Return the use of each bound."""
    return f"Used: {spend(tree.bounds, ledger_of(tree.task, tree.jobs, tree.changed_at))}."


def published(tree: BoundTree) -> Part:
    """Return the list of the tree's pull requests."""
    return Part([f"- Published as {url}" for url in tree.published], 4_000, everything(tree))


def updated(tree: BoundTree) -> str:
    return f"As of {clock(tree.changed_at)}."


def why(tree: BoundTree) -> Iterator[str]:
    """Yield the reason and the next command, if there is more to say than the state."""
    if tree.task.why:
        yield f"Why: {line(tree.task.why, 600)}"
    if tree.task.next and tree.task.state is not TaskState.AWAITING_HUMAN:
        yield f"Next: {code(tree.task.next)}"


def _name(job: JobRecord) -> str:
    if job.delegation_id:
        return code(job.delegation_id)
    return "root" if job.continuation is Continuation.NONE else f"({job.continuation})"


def _worker(job: JobRecord) -> str:
    again = f", attempt {job.attempt}" if job.attempt > 1 else ""
    return f"{cell(job.agent)}, {job.action}{again}"


def _state(job: JobRecord) -> str:
    return f"{MARKS[job.state]} {job.state}"


def _decision(job: JobRecord) -> str:
    return decided(job.state, job.decision)
